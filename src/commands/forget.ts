import type { CommandEvent } from "../port/events.ts";
import { type Command, postNotice } from "./command.ts";

const HERE = new Set(["conversation", "this conversation", "here"]);
const EVERYTHING = new Set(["me", "everything", "everything about me", "all"]);
/**
 * The suffix that confirms the erasure of everything. It begins where blanks begin: a search from each of thousands of
 * blanks would take seconds.
 */
const FOR_GOOD = /(?<!\s)\s+for good$/;

const WHICH =
  "Say which: with the word `conversation` I erase this conversation, with the word `me` everything I keep about you, everywhere.";
const SURE =
  "This erases everything I keep about you, everywhere: what you wrote to me, what I answered, your pictures and what you used. It cannot be brought back, and nothing is erased yet. If you mean it, say `me for good`: `/forget me for good`, or `!forget me for good` in a thread.";
const NOTHING_HERE =
  "I keep nothing of a conversation in this place. Where several go on side by side, reply to a message of the one you mean with `!forget conversation`.";

/** Both erase for the author of an event and resolve to the number of messages erased. */
export interface Erasers {
  /** All of the conversation for those who may settle things there, what the person said and was answered for others. */
  conversation(event: CommandEvent): Promise<number>;
  everything(event: CommandEvent): Promise<number>;
}

/** `/forget conversation`, `/forget me for good`: erases data. Without one of these words it asks which. */
export function createForgetCommand(erase: Erasers): Command {
  async function carryOut(event: CommandEvent): Promise<string> {
    const what = event.text.trim().toLowerCase();
    if (HERE.has(what)) {
      const count = await erase.conversation(event);
      return count === 0 ? NOTHING_HERE : `Erased: ${countMessages(count)} of this conversation.`;
    }
    if (!EVERYTHING.has(what.replace(FOR_GOOD, ""))) return WHICH;
    if (!FOR_GOOD.test(what)) return SURE;
    const count = await erase.everything(event);
    const erased = count === 0 ? "There was nothing left to erase." : `Erased: ${countMessages(count)}.`;
    return `${erased} I know nothing about you any more.`;
  }

  return {
    name: "forget",
    description: "Erases this conversation, or everything I keep about you: say `conversation` or `me`.",
    async run(event, sink, signal) {
      await postNotice(sink, event, await carryOut(event), signal);
    },
  };
}

/** The bot's answers among them. */
function countMessages(count: number): string {
  return `${count} ${count === 1 ? "message" : "messages"}`;
}
