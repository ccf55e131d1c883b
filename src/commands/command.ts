import type { CommandEvent, InboundEvent, ReplySink } from "../adapter.ts";
import { neutralize } from "../text/neutralize.ts";

/** A word people give the bot instead of a question. */
export interface Command {
  name: string;
  /** One sentence for the list of commands. */
  description: string;
  /** Carries it out and answers through the sink. May be run again after a crash: everything it does bears repeating. */
  run(event: CommandEvent, sink: ReplySink, signal: AbortSignal): Promise<void>;
}

/** Answers an event with one short message; the event's key as nonce keeps it single. */
export async function postNotice(
  sink: ReplySink,
  event: InboundEvent,
  markdown: string,
  signal: AbortSignal,
): Promise<void> {
  await sink.post({ markdown: neutralize(markdown), buttons: [], streaming: false }, `${event.key}:notice`, signal);
}
