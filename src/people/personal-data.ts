import { setImmediate } from "node:timers/promises";
import { mayConfigure } from "../commands/command.ts";
import type { Erasers } from "../commands/forget.ts";
import type { History } from "../history/history.ts";
import type { Imagine } from "../imagine/imagine.ts";
import type { JobStore } from "../imagine/job-store.ts";
import type { PictureJob } from "../imagine/picture-job.ts";
import { toErasureStop } from "../imagine/waiting.ts";
import type { Insight } from "../insight/insight.ts";
import type { Audit } from "../policy/audit.ts";
import type { Adapter } from "../port/adapter.ts";
import type { Author, CommandEvent } from "../port/events.ts";
import { idsOf, isSamePerson, isWhole } from "../port/identity.ts";
import { toConversationOf } from "../port/ids.ts";
import { laneOf } from "../queue/event-lane.ts";
import type { Queue } from "../queue/queue.ts";
import type { Settings } from "../settings/settings.ts";
import type { Ledger } from "../tools/ledger.ts";
import type { TurnRecords } from "../turn/record.ts";
import type { Usage } from "../usage/usage.ts";
import type { KeptLooking } from "./looking.ts";

const PAGE_IDS = 100;

export interface PersonalDataDeps {
  queue: Pick<Queue, "forget" | "forgetDrawings" | "tell">;
  history: Pick<History, "isNew" | "forgetConversation" | "forgetAuthor" | "exportAuthor">;
  records: Pick<TurnRecords, "erase" | "forget" | "readFeedback" | "readSights">;
  ledger: Pick<Ledger, "takeBack">;
  jobs: Pick<JobStore, "erase" | "exportAuthor">;
  imagine: Pick<Imagine, "forget">;
  settings: Pick<Settings, "forgetAuthor" | "exportAuthor">;
  usage: Pick<Usage, "forgetAuthor" | "exportAuthor">;
  audit: Pick<Audit, "forgetAuthor" | "exportAuthor">;
  looking: Pick<KeptLooking, "forgetAuthor" | "exportAuthor">;
  /** Absent without a dashboard. */
  insight?: Pick<Insight, "forgetAuthor" | "exportAuthor"> | undefined;
  adapterOf(platform: string): Adapter;
  /** Removes what was erased from the disk and the memory of this process too. */
  eraseCopies(): void;
}

/** Gives people what is kept about them, wherever that is, and erases it. */
export interface PersonalData {
  erasers: Erasers;
  collect(platform: string, author: Author): Promise<object>;
}

export function createPersonalData(deps: PersonalDataDeps): PersonalData {
  const { queue, history, records, ledger, jobs, imagine, settings, usage, audit, looking, insight } = deps;
  const { adapterOf, eraseCopies } = deps;

  async function eraseConversation(event: CommandEvent): Promise<number> {
    const { conversationId, reply, author, at } = event;
    const people = mayConfigure(author)
      ? [undefined]
      : idsOf(author).map(({ id }) => ({ platform: reply.platform, id }));
    // Without a history people only spoke to each other. An erased one still counts, for the attempt after a crash.
    const hasHistory = !(await history.isNew(conversationId));
    const adapter = adapterOf(reply.platform);
    const waiting = await queue.forgetDrawings(
      (drawing) => toConversationOf(drawing) === conversationId && isTheirs(event, drawing),
    );
    const drawn = await jobs.erase((job) => job.conversationId === conversationId && isTheirs(event, job));
    const wanted = new Map<string, Wish>(waiting.map((drawing) => [laneOf(drawing).workId, drawing]));
    for (const job of drawn) if (!job.isOver) wanted.set(job.id, job);
    // Every process hears of it: no further link is made for what is erased.
    for (const [jobId, wish] of wanted) await queue.tell(toErasureStop(jobId, wish));
    const erased: string[] = [];
    for (const person of people) {
      if (hasHistory) await adapter.forgetConversation?.(conversationId, person?.id, at);
      erased.push(...(await history.forgetConversation(conversationId, person)));
      await ledger.takeBack({ conversationId, ...(person && { by: person }) });
    }
    for (let from = 0; from < erased.length; from += PAGE_IDS) {
      const ids = erased.slice(from, from + PAGE_IDS);
      await records.erase(ids);
      // Lets others go on: an embedded store answers without ever leaving this thread.
      await setImmediate();
    }
    eraseCopies();
    return new Set([...erased, ...wanted.keys(), ...drawn.map(({ id }) => id)]).size;
  }

  async function eraseAuthor({
    key,
    reply: { platform },
    author,
  }: Parameters<Erasers["everything"]>[0]): Promise<number> {
    // A platform that is switched off may keep more about the person, so nothing is erased then.
    const adapter = adapterOf(platform);
    let count = 0;
    for (const known of idsOf(author)) {
      const { id, within } = known;
      if (isWhole(known)) await queue.forget(platform, id, key);
      count += await history.forgetAuthor(platform, id, within);
      await records.forget(platform, id, within);
      await imagine.forget(platform, id, within);
      await insight?.forgetAuthor(platform, id, within);
      if (!isWhole(known)) continue;
      await ledger.takeBack({ by: { platform, id } });
      await settings.forgetAuthor(platform, id);
      await usage.forgetAuthor(platform, id);
      await audit.forgetAuthor(platform, id);
      await looking.forgetAuthor(platform, id);
      await adapter.forget?.(id);
    }
    eraseCopies();
    return count;
  }

  async function collect(platform: string, author: Author): Promise<object> {
    const found = [];
    for (const known of idsOf(author)) {
      const { id, within } = known;
      found.push({
        conversations: (await history.exportAuthor(platform, id, within)).conversations,
        personas: isWhole(known) ? await settings.exportAuthor(platform, id) : [],
        pictures: await jobs.exportAuthor(platform, id, within),
        feedback: await records.readFeedback(platform, id, within),
        givenToModel: await records.readSights(platform, id, within),
        turns: (await insight?.exportAuthor(platform, id, within)) ?? [],
        usage: isWhole(known) ? await usage.exportAuthor(platform, id) : [],
        changes: isWhole(known) ? await audit.exportAuthor(platform, id) : [],
        lookedAt: isWhole(known) ? await looking.exportAuthor(platform, id) : [],
      });
    }
    return {
      platform,
      authorId: author.id,
      exportedAt: Date.now(),
      conversations: found.flatMap(({ conversations }) => conversations),
      personas: found.flatMap(({ personas }) => personas),
      pictures: found.flatMap(({ pictures }) => pictures),
      feedback: found.flatMap(({ feedback }) => feedback),
      givenToModel: found.flatMap(({ givenToModel }) => givenToModel),
      ...(insight && { turns: found.flatMap(({ turns }) => turns) }),
      usage: found.flatMap(({ usage }) => usage),
      changes: found.flatMap(({ changes }) => changes),
      lookedAt: found.flatMap(({ lookedAt }) => lookedAt),
    };
  }

  return {
    erasers: { conversation: eraseConversation, everything: eraseAuthor },
    collect,
  };
}

/** A picture that was asked for, whether it waits or was begun. */
type Wish = Pick<PictureJob, "conversationId" | "reply" | "author">;

/** True for what a person erases with a conversation: what they asked for, and that of all for those who settle things there. */
function isTheirs({ author, reply }: CommandEvent, wish: Wish): boolean {
  return mayConfigure(author) || (reply.platform === wish.reply.platform && isSamePerson(author, wish));
}
