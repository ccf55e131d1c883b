import { setImmediate } from "node:timers/promises";
import type { Adapter, CommandEvent } from "../adapter.ts";
import { mayConfigure } from "../commands/command.ts";
import type { Erasers } from "../commands/forget.ts";
import type { History } from "../history.ts";
import type { JobStore } from "../imagine/job-store.ts";
import type { Imagine } from "../imagine.ts";
import type { Queue } from "../queue/queue.ts";
import type { Settings } from "../settings.ts";
import type { TurnRecords } from "../turn/record.ts";
import type { Usage } from "./usage.ts";

const PAGE_IDS = 100;

export interface PersonalDataDeps {
  queue: Pick<Queue, "forget">;
  history: Pick<History, "isNew" | "forgetConversation" | "forgetAuthor" | "exportAuthor">;
  records: Pick<TurnRecords, "erase" | "forget" | "readFeedback">;
  jobs: Pick<JobStore, "erase" | "exportAuthor">;
  imagine: Pick<Imagine, "forget">;
  settings: Pick<Settings, "forgetAuthor" | "exportAuthor">;
  usage: Pick<Usage, "forgetAuthor" | "exportAuthor">;
  adapterOf(platform: string): Adapter;
  /** What was erased is to be gone from the disk too. */
  emptyLog(): void;
}

/** What is kept about people, wherever that is: to be given to them, and to be erased. */
export interface PersonalData {
  erasers: Erasers;
  /** Everything, as JSON takes it. */
  collect(platform: string, authorId: string): Promise<object>;
}

export function createPersonalData(deps: PersonalDataDeps): PersonalData {
  const { queue, history, records, jobs, imagine, settings, usage, adapterOf, emptyLog } = deps;

  async function eraseConversation(event: CommandEvent): Promise<number> {
    const { conversationId, reply, author, at } = event;
    const person = mayConfigure(author) ? undefined : { platform: reply.platform, id: author.id };
    // Where there was none, people only spoke to each other; and what was erased already is erased again after a crash.
    const hasHistory = !(await history.isNew(conversationId));
    if (hasHistory) await adapterOf(reply.platform).forgetConversation?.(conversationId, person?.id, at);
    const erased = await history.forgetConversation(conversationId, person);
    for (let from = 0; from < erased.length; from += PAGE_IDS) {
      const ids = erased.slice(from, from + PAGE_IDS);
      await records.erase(ids);
      await jobs.erase(ids);
      // Lets others go on: an embedded store answers without ever leaving this thread.
      await setImmediate();
    }
    emptyLog();
    return erased.length;
  }

  async function eraseAuthor({ key, reply: { platform }, author: { id } }: CommandEvent): Promise<number> {
    await queue.forget(platform, id, key);
    const count = await history.forgetAuthor(platform, id);
    await records.forget(platform, id);
    await imagine.forget(platform, id);
    await settings.forgetAuthor(platform, id);
    await usage.forgetAuthor(platform, id);
    await adapterOf(platform).forget?.(id);
    emptyLog();
    return count;
  }

  return {
    erasers: { conversation: eraseConversation, everything: eraseAuthor },
    collect: async (platform, authorId) => ({
      ...(await history.exportAuthor(platform, authorId)),
      personas: await settings.exportAuthor(platform, authorId),
      pictures: await jobs.exportAuthor(platform, authorId),
      feedback: await records.readFeedback(platform, authorId),
      usage: await usage.exportAuthor(platform, authorId),
    }),
  };
}
