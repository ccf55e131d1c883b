import { postNotice } from "../commands/command.ts";
import { NEVER, runWithin } from "../concurrency/deadlines.ts";
import type { ActionEvent, CommandEvent } from "../port/events.ts";
import type { ReplySink } from "../port/sink.ts";
import { isRefusal } from "../reply/platform-call.ts";
import type { Services } from "../services/services.ts";

/** Maximum time for a command. Erasing a person with many messages can take long. */
const COMMAND_TIMEOUT_MS = 120_000;

export type Replies = ReturnType<typeof createReplies>;

export function createReplies({ sinkOf, log }: Services) {
  function notify(event: CommandEvent | ActionEvent, text: string, signal: AbortSignal): Promise<void> {
    return reply(event, signal, (sink, signal) => postNotice(sink, event, text, signal));
  }

  /**
   * Calls `deliver` to answer the author privately. If the platform rejects the answer, logs the error and resolves.
   */
  async function reply(
    event: CommandEvent | ActionEvent,
    signal: AbortSignal,
    deliver: (sink: ReplySink, signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const sink = sinkOf({ ...event.reply, visibleTo: event.author.id });
    try {
      await runWithin(COMMAND_TIMEOUT_MS, (signal) => deliver(sink, signal), signal);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      log.warn({ err: error, key: event.key }, "an answer to a command or a button could not be delivered");
    }
  }

  /** Refuses immediately, because the queue would deliver the event only after the running answer has ended. */
  async function refuseAtOnce(event: ActionEvent | CommandEvent, refusal: string): Promise<void> {
    try {
      await notify(event, refusal, NEVER);
    } catch (error) {
      log.warn({ err: error, key: event.key }, "the reason why a stop was refused could not be delivered");
    }
  }

  return { reply, notify, refuseAtOnce };
}
