import { postNotice } from "../commands/command.ts";
import { NEVER, runWithin } from "../concurrency/deadlines.ts";
import type { ActionEvent, CommandEvent } from "../port/events.ts";
import type { ReplySink } from "../port/sink.ts";
import { isRefusal } from "../reply/platform-call.ts";
import type { Services } from "../services/services.ts";

/** The longest time for a command, such as erasing a person with many messages. */
const COMMAND_TIMEOUT_MS = 120_000;

export type Replies = ReturnType<typeof createReplies>;

/** Creates the replies to people who gave a command or pressed a button. */
export function createReplies({ sinkOf, log }: Services) {
  function notify(event: CommandEvent | ActionEvent, text: string, signal: AbortSignal): Promise<void> {
    return reply(event, signal, (sink, signal) => postNotice(sink, event, text, signal));
  }

  /** Lets `deliver` answer the author privately. Logs it if the platform no longer accepts messages there. */
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

  /** Answers at once, because the worker gets the button press only after the answer has ended. */
  async function refuseAtOnce(event: ActionEvent | CommandEvent, refusal: string): Promise<void> {
    try {
      await notify(event, refusal, NEVER);
    } catch (error) {
      log.warn({ err: error, key: event.key }, "the reason why a stop was refused could not be delivered");
    }
  }

  return { reply, notify, refuseAtOnce };
}
