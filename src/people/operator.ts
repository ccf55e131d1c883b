import { randomUUID } from "node:crypto";
import type { Author } from "../port/events.ts";
import type { Services } from "../services/services.ts";
import type { PersonalData } from "./personal-data.ts";

/** Exports and erases any person's data for an operator at a terminal. */
export interface OperatorData {
  /** Resolves to the people with this id. A short id can match one person in each workspace. */
  find(platform: string, id: string): Promise<Author[]>;
  collect(platform: string, author: Author): Promise<object>;
  /** Resolves to the number of erased messages. */
  erase(platform: string, author: Author): Promise<number>;
}

/** `by` is the operator's name, for the audit log. */
export function createOperatorData(
  { people, stores, usage, audit }: Services & { people: PersonalData },
  by: string,
): OperatorData {
  /** Rejects if the audit log does not accept the entry, so that nothing is exported or erased without one. */
  async function note(what: string, platform: string, author: Author) {
    const event = {
      key: `operator:${randomUUID()}`,
      author: { id: "operator", name: by },
      reply: { platform, channelId: "terminal" },
    };
    const isNoted = await audit.note({ event, what, after: `person:${author.id}` });
    if (!isNoted) throw new Error("The audit log could not be written, so I did nothing. Try again.");
    return event;
  }

  return {
    async find(platform, id) {
      if (id.includes("/")) return [{ id, name: id }];
      const rows = await usage.readTable("everyone");
      const users = rows.filter((row) => row.platform === platform).map(({ authorId }) => authorId);
      const known = (await stores.owners(platform)).union(new Set(users));
      const whole = [...known].filter((one) => one.endsWith(`/${id}`));
      return whole.length === 0 ? [{ id, name: id }] : whole.map((one) => ({ id: one, name: id }));
    },
    async collect(platform, author) {
      await note("export", platform, author);
      return people.collect(platform, author);
    },
    async erase(platform, author) {
      const { key, reply } = await note("erasure", platform, author);
      return people.erasers.everything({ key, reply, author });
    },
  };
}
