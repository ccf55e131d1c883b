import { createHash, randomUUID } from "node:crypto";
import type { Logger } from "pino";
import type { ReplyAddress } from "../port/events.ts";
import type { Entries, Stores } from "../store/keyv.ts";
import type { Owner } from "../store/owned.ts";
import { createDamageLog } from "../store/values.ts";
import { MAX_LATE_MS, type Schedule, schedule } from "./schedule.ts";

const NAMESPACE = "schedules";
/** The key of `readNewest`. It is no schedule's id, because these have only letters and digits. */
const NEWEST = "~newest";
/** A card can be confirmed for a day. */
const DRAFT_MS = 86_400_000;
/** A schedule that has ended is listed for a month. */
const ENDED_MS = 30 * 86_400_000;
/** A schedule expires this long after its next run; each run extends the time. */
const KEPT_MS = 396 * 86_400_000;

/** The stored schedules. Promises reject if the store does not answer. */
export interface Schedules {
  read(id: string): Promise<Schedule | undefined>;
  /** Stores a draft or its new version, unless a person has confirmed it. Resolves to what is stored. */
  draft(draft: Schedule): Promise<Schedule>;
  /**
   * Replaces a schedule by the result of `change`, or keeps it if that is undefined. Changes of one schedule run one
   * after another among all processes. Resolves to the result of `change`.
   */
  change(id: string, change: (stored: Schedule | undefined) => Schedule | undefined): Promise<Schedule | undefined>;
  remove(id: string): Promise<void>;
  /**
   * A value that changes whenever a schedule gets an earlier run than it had, and not when its next run moves to a
   * later time. So a process that knows the runs need not read them again while the value stays.
   */
  readNewest(): Promise<string | undefined>;
  /** All that are not drafts, the next run first. The cost grows with their number. */
  list(of?: { person?: Owner; place?: ReplyAddress }): Promise<Schedule[]>;
  exportAuthor(platform: string, authorId: string): Promise<Schedule[]>;
}

export interface SchedulesOptions extends Pick<Stores, "open" | "inTurn"> {
  log: Logger;
  /** Unix milliseconds. */
  now(): number;
}

/**
 * Each schedule is one entry that belongs to its maker and to its conversation, so it is erased with them. Two more
 * owners of the entry are not people: one lists all schedules, the other those of a channel.
 */
export function createSchedules({ open, now, log, ...stores }: SchedulesOptions): Schedules {
  const entries = open(NAMESPACE);
  const logDamage = createDamageLog(log);
  const inTurn = <T>(id: string, task: (entries: Entries) => Promise<T>) =>
    stores.inTurn(`${NAMESPACE}:${id}`, (open) => task(open(NAMESPACE)));

  function parse(key: string, value: unknown): Schedule | undefined {
    if (value === undefined) return undefined;
    const { success, data } = schedule.safeParse(value);
    if (!success) logDamage(key);
    return data;
  }

  function toEntry(one: Schedule) {
    const { id, state, reply, author, conversationId, next = 0 } = one;
    const maker = { platform: reply.platform, id: author.id };
    const ttlMs =
      state === "draft" ? DRAFT_MS : state === "ended" ? ENDED_MS : Math.max(0, next - now()) + KEPT_MS + MAX_LATE_MS;
    const owner = state === "draft" ? [maker] : [maker, ALL, toPlace(reply)];
    return { key: id, value: one, ttlMs, owner, conversation: conversationId };
  }

  async function collect(owner: Owner): Promise<Schedule[]> {
    const found = await Array.fromAsync(entries.entriesOf({ owner }), ([key, value]) => parse(key, value));
    return found.filter((one) => one !== undefined);
  }

  const read = async (id: string) => parse(id, await entries.get<unknown>(id));

  return {
    read,
    draft: (draft) =>
      inTurn(draft.id, async (entries) => {
        const stored = await read(draft.id);
        if (stored !== undefined && stored.state !== "draft") return stored;
        const kept = { ...draft, ...(stored?.card && { card: stored.card }) };
        await entries.put(toEntry(kept));
        return kept;
      }),
    change: (id, change) =>
      inTurn(id, async (entries) => {
        const stored = await read(id);
        const changed = change(stored);
        if (changed === undefined) return undefined;
        const isEarlier = (changed.next ?? Infinity) < (stored?.next ?? Infinity);
        const newest = { key: NEWEST, value: randomUUID(), ttlMs: KEPT_MS };
        await entries.write([toEntry(changed), ...(isEarlier ? [newest] : [])]);
        return changed;
      }),
    readNewest: () => entries.get<string>(NEWEST),
    remove: (id) => inTurn(id, async (entries) => void (await entries.delete(id))),
    async list({ person, place } = {}) {
      const found = await collect(person ?? (place === undefined ? ALL : toPlace(place)));
      return found
        .filter(({ state }) => state !== "draft")
        .toSorted((one, other) => (one.next ?? Infinity) - (other.next ?? Infinity) || one.madeAt - other.madeAt);
    },
    exportAuthor: (platform, id) => collect({ platform, id }),
  };
}

const ALL: Owner = { platform: NAMESPACE, id: "all" };

/** A thread counts as its channel. */
function toPlace({ platform, workspaceId = "", channelId }: ReplyAddress): Owner {
  const place = createHash("sha256")
    .update(JSON.stringify([platform, workspaceId, channelId]))
    .digest("base64url");
  return { platform: NAMESPACE, id: `in:${place}` };
}
