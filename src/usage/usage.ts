import type { Keyv } from "keyv";
import type { Logger } from "pino";
import { z } from "zod";
import { createKeyedQueue, type KeyedQueue } from "../concurrency/keyed-queue.ts";
import { persist } from "../concurrency/retry.ts";
import type { Author, ReplyAddress } from "../port/events.ts";
import { idsOf, isWhole } from "../port/identity.ts";
import { toKeyPart, toOwnerKey } from "../store/key-part.ts";
import { walk } from "../store/values.ts";

const NAMESPACE = "usage";
const DAYS_OF_MONTH = Array.from({ length: 31 }, (_, index) => String(index + 1).padStart(2, "0"));

const amounts = z.object({
  answers: z.number(),
  promptTokens: z.number(),
  completionTokens: z.number(),
  /** The part of both that was estimated, because the gateway did not count it. */
  estimatedTokens: z.number(),
  pictures: z.number(),
});

const inWorkspace = z.object({ workspaceId: z.string() });

/** Amounts of what the gateway did. */
export type Amounts = z.infer<typeof amounts>;

/** A person's use on one day in UTC, such as "2026-11-20". */
export interface OwnUsage extends Amounts {
  day: string;
}

/** Whose, or where, something was used. */
export type UsageSubject =
  | { platform: string; authorId: string }
  | { platform: string; channelId: string; workspaceId?: string }
  | { platform: string; workspaceId: string };

/** Counts by day what people use, for each person, channel and workspace apart; kept for `ttlMs`. */
export interface Usage {
  /** Counts for all three. Never rejects: a turn must not fail because it was counted. */
  note(author: Pick<Author, "id">, reply: ReplyAddress, used: Partial<Amounts>): Promise<void>;
  /** Sums up the current month in UTC. Rejects when the store does not answer. */
  readMonth(subject: UsageSubject): Promise<Amounts>;
  /** Sums up the current month of a person under all ids that are theirs alone. Rejects when the store does not answer. */
  readOwnMonth(platform: string, author: Pick<Author, "id" | "former">): Promise<Amounts>;
  /** Resolves to everything that is kept of a person, oldest first. Rejects when the store does not answer. */
  exportAuthor(platform: string, authorId: string): Promise<OwnUsage[]>;
  /** Erases what a person used; the sums of channels and workspaces, which name nobody, stay. */
  forgetAuthor(platform: string, authorId: string): Promise<void>;
  /** Erases what was used in a workspace, of its people and channels too. */
  eraseWorkspace(platform: string, workspaceId: string): Promise<void>;
}

export interface UsageOptions {
  /** Namespaces nest, see `Stores`. */
  open(namespace: string): Keyv;
  ttlMs: number;
  log: Logger;
  /** Unix milliseconds. */
  now(): number;
  /** Platforms that serve several workspaces: sums of channels from before keys named the workspace are no one's there. */
  severalWorkspaces?: ReadonlySet<string>;
  /** One count of a sum at a time, in all processes that share the store; absent: in this one. */
  inTurn?: KeyedQueue["run"];
}

export function createUsage(options: UsageOptions): Usage {
  const { open, ttlMs, log, now, severalWorkspaces = new Set() } = options;
  const keyv = open(NAMESPACE);
  const takeTurn = options.inTurn ?? createKeyedQueue().run;
  const inTurn = <T>(key: string, task: () => Promise<T>) => takeTurn(`${NAMESPACE}:${key}`, task);

  const toDay = () => new Date(now()).toISOString().slice(0, 10);

  async function add(key: string, used: Partial<Amounts>, workspaceId: string | undefined): Promise<void> {
    const sum = addAmounts(readAmounts(await keyv.get<unknown>(key)), used);
    await keyv.set(key, { v: 1, ...sum, ...(workspaceId !== undefined && { workspaceId }) }, ttlMs);
  }

  /** Days as they are stored, by their names. */
  async function readDays(platform: string, authorId: string): Promise<Map<string, Amounts>> {
    const days = await Array.fromAsync(walk(open(`${NAMESPACE}:${toPrefix({ platform, authorId })}`)));
    return new Map(days.map(([day, value]) => [day, readAmounts(value)]));
  }

  async function readMonth(subject: UsageSubject): Promise<Amounts> {
    const month = toDay().slice(0, 7);
    const prefixes = [toPrefix(subject), ...toFormerPrefixes(subject)];
    const keys = prefixes.flatMap((prefix) => DAYS_OF_MONTH.map((day) => `${prefix}:${month}-${day}`));
    const values = await keyv.getMany<unknown>(keys);
    return values.map(readAmounts).reduce<Amounts>(addAmounts, NOTHING);
  }

  /** The keys of a channel's sums from before keys named the workspace. */
  function toFormerPrefixes(subject: UsageSubject): string[] {
    if (!("channelId" in subject) || subject.workspaceId === undefined) return [];
    const { platform, channelId } = subject;
    return severalWorkspaces.has(platform) ? [] : [toPrefix({ platform, channelId })];
  }

  return {
    async note({ id: authorId }, { platform, channelId, workspaceId }, used) {
      if (!Object.values(used).some((count) => count > 0)) return;
      const day = toDay();
      const workspace = workspaceId === undefined ? undefined : { workspaceId };
      const subjects: UsageSubject[] = [
        { platform, authorId },
        { platform, channelId, ...workspace },
        ...(workspace === undefined ? [] : [{ platform, ...workspace }]),
      ];
      const onFailure = (err: unknown) => log.warn({ err }, "what was used could not be counted");
      await Promise.all(
        subjects.map((subject) => {
          const key = `${toPrefix(subject)}:${day}`;
          return persist(() => inTurn(key, () => add(key, used, workspaceId)), onFailure);
        }),
      );
    },
    readMonth,
    async readOwnMonth(platform, author) {
      const ids = idsOf(author).filter(isWhole);
      const months = await Promise.all(ids.map(({ id }) => readMonth({ platform, authorId: id })));
      return months.reduce<Amounts>(addAmounts, NOTHING);
    },
    async exportAuthor(platform, authorId) {
      const days = await readDays(platform, authorId);
      const own = [...days].map(([day, used]) => ({ day, ...used }));
      return own.toSorted((one, other) => (one.day < other.day ? -1 : 1));
    },
    async forgetAuthor(platform, authorId) {
      const prefix = toPrefix({ platform, authorId });
      for (const day of (await readDays(platform, authorId)).keys()) {
        const key = `${prefix}:${day}`;
        // In turn with `note`, or a count under way would write the day back.
        await inTurn(key, () => keyv.delete(key));
      }
    },
    async eraseWorkspace(platform, workspaceId) {
      for (const [key, value] of await Array.fromAsync(walk(keyv))) {
        const isIn = inWorkspace.safeParse(value).data?.workspaceId === workspaceId;
        if (isIn && key.split(":")[1] === toKeyPart(platform)) await inTurn(key, () => keyv.delete(key));
      }
    },
  };
}

/** Such as "2 answers, 1,500 tokens (300 of them estimated), no pictures". */
export function describeAmounts(used: Amounts): string {
  const { answers, promptTokens, completionTokens, estimatedTokens, pictures } = used;
  const estimated = estimatedTokens === 0 ? "" : ` (${estimatedTokens.toLocaleString("en-US")} of them estimated)`;
  const tokens = count(promptTokens + completionTokens, "token");
  return `${count(answers, "answer")}, ${tokens}${estimated}, ${count(pictures, "picture")}`;
}

function count(number: number, noun: string): string {
  return `${number === 0 ? "no" : number.toLocaleString("en-US")} ${noun}${number === 1 ? "" : "s"}`;
}

const NOTHING: Amounts = { answers: 0, promptTokens: 0, completionTokens: 0, estimatedTokens: 0, pictures: 0 };

/** An absent or damaged value counts as nothing. */
function readAmounts(value: unknown): Amounts {
  const { success, data } = amounts.safeParse(value);
  return success ? data : NOTHING;
}

function addAmounts(one: Amounts, other: Partial<Amounts>): Amounts {
  return {
    answers: one.answers + (other.answers ?? 0),
    promptTokens: one.promptTokens + (other.promptTokens ?? 0),
    completionTokens: one.completionTokens + (other.completionTokens ?? 0),
    estimatedTokens: one.estimatedTokens + (other.estimatedTokens ?? 0),
    pictures: one.pictures + (other.pictures ?? 0),
  };
}

function toPrefix(subject: UsageSubject): string {
  if ("authorId" in subject) return toOwnerKey(subject.platform, subject.authorId);
  const platform = toKeyPart(subject.platform);
  if ("channelId" in subject) {
    const { workspaceId, channelId } = subject;
    return ["in", platform, ...(workspaceId === undefined ? [] : [toKeyPart(workspaceId)]), toKeyPart(channelId)].join(
      ":",
    );
  }
  return `at:${platform}:${toKeyPart(subject.workspaceId)}`;
}
