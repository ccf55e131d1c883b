import { randomUUID } from "node:crypto";
import type { History } from "../history/history.ts";
import type { Audit } from "../policy/audit.ts";
import type { Author } from "../port/events.ts";
import type { Usage } from "../usage/usage.ts";
import type { PersonalData } from "./personal-data.ts";

export interface OperatorDataDeps {
  people: PersonalData;
  history: Pick<History, "listAuthors">;
  usage: Pick<Usage, "readTable">;
  audit: Pick<Audit, "note">;
  /** The operator's name, for the audit log. */
  by: string;
}

/** Does the work of `/export` and `/forget` for an operator at a terminal, about any person. */
export interface OperatorData {
  /** Resolves to the people of a platform whom an id means: a short id may name one in each workspace. */
  find(platform: string, id: string): Promise<Author[]>;
  collect(platform: string, author: Author): Promise<object>;
  /** Resolves to the number of messages erased. */
  erase(platform: string, author: Author): Promise<number>;
}

export function createOperatorData({ people, history, usage, audit, by }: OperatorDataDeps): OperatorData {
  /** Rejects when the audit log does not keep it: then nothing may be given or erased. */
  async function note(what: string, platform: string, author: Author) {
    const event = {
      key: `operator:${randomUUID()}`,
      author: { id: "operator", name: by },
      reply: { platform, channelId: "terminal" },
    };
    const isNoted = await audit.note({ event, what, after: `person:${author.id}` });
    if (!isNoted) throw new Error("The audit log could not be written, so nothing was done. Try again.");
    return event;
  }

  return {
    async find(platform, id) {
      if (id.includes("/")) return [{ id, name: id }];
      const rows = await usage.readTable("everyone");
      const users = rows.filter((row) => row.platform === platform).map(({ authorId }) => authorId);
      const known = (await history.listAuthors(platform)).union(new Set(users));
      const whole = [...known].filter((one) => one.endsWith(`/${id}`));
      // Earlier versions stored the short id alone.
      return whole.length === 0 ? [{ id, name: id }] : whole.map((one) => ({ id: one, name: id, former: { id } }));
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
