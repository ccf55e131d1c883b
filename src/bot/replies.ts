import type { Logger } from "pino";
import { postNotice } from "../commands/command.ts";
import { runWithin } from "../concurrency/deadlines.ts";
import type { ActionEvent, CommandEvent } from "../port/events.ts";
import type { ReplySink } from "../port/sink.ts";
import type { SinkOf } from "../reply/paced-sink.ts";
import { isRefusal } from "../reply/platform-call.ts";

/** Longest a command may take, the erasure of a person with many messages included. */
const COMMAND_TIMEOUT_MS = 120_000;
const STORE_IS_AWAY =
  "My memory is out of reach right now. I will do this as soon as it is back: you need not ask for it again.";

const NEVER = new AbortController().signal;

interface RepliesDeps {
  sinkOf: SinkOf;
  log: Logger;
}

export type Replies = ReturnType<typeof createReplies>;

/** Speaks to the person who gave a command or pressed a button. */
export function createReplies({ sinkOf, log }: RepliesDeps) {
  function notify(event: CommandEvent | ActionEvent, text: string, signal: AbortSignal): Promise<void> {
    return reply(event, signal, (sink, signal) => postNotice(sink, event, text, signal));
  }

  /** Lets `deliver` answer the author alone. Where no message of ours is taken any more, there is nobody to tell. */
  async function reply(
    event: CommandEvent | ActionEvent,
    signal: AbortSignal,
    deliver: (sink: ReplySink, signal: AbortSignal) => Promise<void>,
    boundsItself = false,
  ): Promise<void> {
    const sink = sinkOf({ ...event.reply, visibleTo: event.author.id });
    try {
      if (boundsItself) await deliver(sink, signal);
      else await runWithin(COMMAND_TIMEOUT_MS, (signal) => deliver(sink, signal), signal);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      log.warn({ err: error, key: event.key }, "an answer to a command or a button could not be delivered");
    }
  }

  /** While the answer is being written: when its turn comes in the conversation, nobody waits for a word any more. */
  async function refuseAtOnce(event: ActionEvent, refusal: string): Promise<void> {
    try {
      await notify(event, refusal, NEVER);
    } catch (error) {
      log.warn({ err: error, key: event.key }, "why a stop was refused could not be said");
    }
  }

  /** Best effort, and of its own message: the answer comes later. */
  async function sayStoreIsAway(event: CommandEvent | ActionEvent, signal: AbortSignal): Promise<void> {
    const draft = { markdown: STORE_IS_AWAY, buttons: [], streaming: false };
    try {
      await reply(event, signal, async (sink, signal) => void (await sink.post(draft, `${event.key}:away`, signal)));
    } catch (error) {
      log.warn({ err: error, key: event.key }, "that the store is away could not be said");
    }
  }

  return { reply, notify, refuseAtOnce, sayStoreIsAway };
}
