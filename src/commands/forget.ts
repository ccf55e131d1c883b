import type { Author, CommandEvent } from "../port/events.ts";
import { quoteName } from "../text/quote-name.ts";
import { type Command, NOT_KEPT, ONLY_ADMINS, PERSON_FIELD, postNotice, readPerson } from "./command.ts";

const HERE = new Set(["conversation", "this conversation", "here"]);
const EVERYTHING = new Set(["me", "everything", "everything about me", "all"]);
/** The words that confirm erasing everything. Without the lookbehind, thousands of spaces would take seconds. */
const FOR_GOOD = /(?<!\s)\s+for good$/i;

const WHICH =
  "Write `conversation` after the command to erase this conversation, or `me` to erase everything I keep about you, everywhere.";
const SURE =
  "This erases everything I keep about you, everywhere: what you wrote to me, my answers, your images and your usage. It can't be undone. Nothing is erased yet: to confirm, write `/forget me for good`, or `!forget me for good` in a thread.";
const NOTHING_HERE =
  "I haven't kept a conversation here. If you mean one of several, reply to one of its messages with `!forget conversation`.";

/**
 * `/forget conversation` and `/forget me for good` erase data. Admins erase another person's data with `/forget
 * @someone for good`. Other words erase nothing, and the command asks what to erase.
 */
export const FORGET: Command = {
  name: "forget",
  description: "Erase this conversation, or everything I keep about you: `conversation` or `me`; admins: @someone.",
  usage: "conversation, or me; admins: @someone",
  fields: [
    PERSON_FIELD,
    {
      name: "what",
      description: "What to erase",
      kind: "text",
      choices: [
        { name: "This conversation", value: "conversation" },
        { name: "Everything about me", value: "me" },
        { name: "Everything about me, for good", value: "me for good" },
        { name: "Everything about that person, for good (admins)", value: "for good" },
      ],
    },
  ],
  namesPeople: true,
  create({ people, access, audit }) {
    async function eraseOther(event: CommandEvent, person: Author, isForGood: boolean): Promise<string> {
      if (!access.isAdmin(event)) return ONLY_ADMINS;
      const whom = `person:${person.id}`;
      const name = quoteName(person.id);
      if (!isForGood) {
        return `This erases everything I keep about ${name}, everywhere. It can't be undone. Nothing is erased yet: to confirm, write \`/forget ${whom} for good\`, or \`!forget ${whom} for good\` in a thread.`;
      }
      // Write the audit entry before the erasure, which then replaces the person's id in the entry too.
      if (!(await audit.note({ event, what: "erasure", after: whom }))) return NOT_KEPT;
      const count = await people.erasers.everything({ ...event, author: person });
      return `${describeErased(count)} I no longer know anything about ${name}.`;
    }

    async function carryOut(event: CommandEvent): Promise<string> {
      const words = event.text.trim();
      const person = readPerson(words.replace(FOR_GOOD, ""), event);
      if (person !== undefined) return eraseOther(event, person, FOR_GOOD.test(words));
      const what = words.toLowerCase();
      if (HERE.has(what)) {
        const count = await people.erasers.conversation(event);
        return count === 0 ? NOTHING_HERE : `Erased ${countMessages(count)} from this conversation.`;
      }
      if (!EVERYTHING.has(what.replace(FOR_GOOD, ""))) return WHICH;
      if (!FOR_GOOD.test(what)) return SURE;
      const count = await people.erasers.everything(event);
      return `${describeErased(count)} I no longer know anything about you.`;
    }

    return async (event, sink, signal) => {
      await postNotice(sink, event, await carryOut(event), signal);
    };
  },
};

function describeErased(count: number): string {
  return count === 0 ? "There was nothing left to erase." : `Erased ${countMessages(count)}.`;
}

function countMessages(count: number): string {
  return `${count} ${count === 1 ? "message" : "messages"}`;
}
