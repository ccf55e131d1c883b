import type { Access } from "../policy/access.ts";
import type { Audit } from "../policy/audit.ts";
import type { Author, CommandEvent } from "../port/events.ts";
import { quoteName } from "../text/quote-name.ts";
import { type Command, NOT_KEPT, ONLY_ADMINS, postNotice, readPerson } from "./command.ts";

const HERE = new Set(["conversation", "this conversation", "here"]);
const EVERYTHING = new Set(["me", "everything", "everything about me", "all"]);
/**
 * The suffix that confirms the erasure of everything. It begins where blanks begin: a search from each of thousands of
 * blanks would take seconds.
 */
const FOR_GOOD = /(?<!\s)\s+for good$/i;

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
  everything(event: Pick<CommandEvent, "key" | "reply" | "author">): Promise<number>;
}

export interface ForgetCommandDeps {
  erase: Erasers;
  access: Pick<Access, "isAdmin">;
  audit: Pick<Audit, "note">;
}

/**
 * `/forget conversation`, `/forget me for good`: erases data. Admins erase everything about another person with
 * `/forget @someone for good`. Without one of these words it asks which.
 */
export function createForgetCommand({ erase, access, audit }: ForgetCommandDeps): Command {
  async function eraseOther(event: CommandEvent, person: Author, isForGood: boolean): Promise<string> {
    if (!access.isAdmin(event)) return ONLY_ADMINS;
    const whom = `person:${person.id}`;
    const name = quoteName(person.id);
    if (!isForGood) {
      return `This erases everything I keep about ${name}, everywhere. It cannot be brought back, and nothing is erased yet. If you mean it, write \`/forget ${whom} for good\`, or \`!forget ${whom} for good\` in a thread.`;
    }
    // Note it first: then the erasure replaces the person with a pseudonym in this entry too.
    if (!(await audit.note({ event, what: "erasure", after: whom }))) return NOT_KEPT;
    const count = await erase.everything({ ...event, author: person });
    return `${describeErased(count)} I know nothing about ${name} any more.`;
  }

  async function carryOut(event: CommandEvent): Promise<string> {
    const words = event.text.trim();
    const person = readPerson(words.replace(FOR_GOOD, ""), event);
    if (person !== undefined) return eraseOther(event, person, FOR_GOOD.test(words));
    const what = words.toLowerCase();
    if (HERE.has(what)) {
      const count = await erase.conversation(event);
      return count === 0 ? NOTHING_HERE : `Erased: ${countMessages(count)} of this conversation.`;
    }
    if (!EVERYTHING.has(what.replace(FOR_GOOD, ""))) return WHICH;
    if (!FOR_GOOD.test(what)) return SURE;
    const count = await erase.everything(event);
    return `${describeErased(count)} I know nothing about you any more.`;
  }

  return {
    name: "forget",
    description: "Erases this conversation, or everything I keep about you: `conversation` or `me`; admins: @someone.",
    async run(event, sink, signal) {
      await postNotice(sink, event, await carryOut(event), signal);
    },
  };
}

function describeErased(count: number): string {
  return count === 0 ? "There was nothing left to erase." : `Erased: ${countMessages(count)}.`;
}

/** The bot's answers among them. */
function countMessages(count: number): string {
  return `${count} ${count === 1 ? "message" : "messages"}`;
}
