import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { z } from "zod";
import { persist } from "../concurrency/retry.ts";
import type { Author, ReplyAddress } from "../port/events.ts";
import type { Addition, Counters, Counts } from "../store/counters.ts";
import { readKeyPart, toKeyPart, toOwnerKey } from "../store/key-part.ts";

/** Thirteen months: the current month and a whole year before it. */
const KEPT_MS = 400 * 86_400_000;
/** Prefix of pseudonyms. It cannot start a name, because names are encoded, see `toKeyPart`. */
const FORGOTTEN = "@";
const COST = "cost:";

const amounts = z.object({
  answers: z.number(),
  /** Requests to the gateway. An answer that uses tools needs several. */
  requests: z.number(),
  promptTokens: z.number(),
  /** Prompt tokens that the gateway read from its cache, if it reports them. */
  cachedTokens: z.number(),
  completionTokens: z.number(),
  /** Tokens that were estimated, because the gateway did not count them. */
  estimatedTokens: z.number(),
  pictures: z.number(),
  /** Requests whose cost is unknown: the model has no price, and the gateway reports no cost. */
  unpriced: z.number(),
  /** Costs by currency, in billionths of its unit. */
  costs: z.record(z.string(), z.number()),
});

export type Amounts = z.infer<typeof amounts>;

/** A person's usage on one UTC day, such as "2026-11-20". */
export interface OwnUsage extends Amounts {
  day: string;
}

export type UsageSubject =
  | { platform: string; authorId: string }
  | { platform: string; channelId: string; workspaceId?: string }
  | { platform: string; workspaceId: string }
  | "everyone";

/** What the usage is charged to: the person, the channel and the model. */
export interface UsedBy {
  author: Pick<Author, "id">;
  reply: Pick<ReplyAddress, "platform" | "channelId" | "workspaceId">;
  /** Absent if no model was called. */
  model?: string;
}

/** One person's usage of one model in one channel on one day. An id is "" if the platform has no such id. */
export interface UsageRow extends Amounts {
  day: string;
  platform: string;
  workspaceId: string;
  channelId: string;
  /** A pseudonym that starts with "@" if the person's data was erased. */
  authorId: string;
  model: string;
}

/**
 * Counts usage exactly, by day and model, for each person, channel and workspace and in total. Kept for thirteen
 * months.
 */
export interface Usage {
  /**
   * Adds to the counts of the person, the channel, the workspace and the total. Adds only once for the same `once`.
   * Never rejects, because counting must not fail a turn.
   */
  note(once: string, by: UsedBy, used: Partial<Amounts>): Promise<void>;
  /** Returns the additions of `note`, for callers that make other additions in the same step. */
  toAdditions(by: UsedBy, used: Partial<Amounts>): Addition[];
  /** Sums up the current UTC month. Rejects if the store does not respond. */
  readMonth(subject: UsageSubject): Promise<Amounts>;
  /** Resolves to all stored rows, oldest first. Rejects if the store does not respond. */
  readTable(subject: UsageSubject): Promise<UsageRow[]>;
  /** Resolves to a person's whole usage, oldest first. Rejects if the store does not respond. */
  exportAuthor(platform: string, authorId: string): Promise<OwnUsage[]>;
  /** Replaces the person with a pseudonym. All sums stay the same. */
  forgetAuthor(platform: string, authorId: string): Promise<void>;
  /** Erases a workspace's usage, including that of its people and channels. */
  eraseWorkspace(platform: string, workspaceId: string): Promise<void>;
}

export interface UsageOptions {
  counters: Counters;
  log: Logger;
  /** Unix milliseconds. */
  now(): number;
}

export function createUsage(options: UsageOptions): Usage {
  const { counters, log, now } = options;
  const toDay = () => new Date(now()).toISOString().slice(0, 10);

  async function readMonth(subject: UsageSubject): Promise<Amounts> {
    const rows = await counters.list(`${toPrefix(subject)}:${toDay().slice(0, 7)}`);
    return rows.map(([, counts]) => toAmounts(counts)).reduce<Amounts>(addAmounts, NOTHING);
  }

  async function listPeople(platform?: string): Promise<Array<[row: string, parts: RowParts, counts: Counts]>> {
    const rows = await counters.list(platform === undefined ? "by:" : `by:${toKeyPart(platform)}:`);
    return rows.map(([row, counts]) => [row, readParts(row), counts]);
  }

  function toAdditions({ author, reply, model = "" }: UsedBy, used: Partial<Amounts>): Addition[] {
    const { platform, channelId, workspaceId } = reply;
    const workspace = workspaceId === undefined ? undefined : { workspaceId };
    const day = toDay();
    const of = toKeyPart(model);
    const place = `${toKeyPart(workspaceId ?? "")}:${toKeyPart(channelId)}`;
    const rows = [
      `${toPrefix({ platform, authorId: author.id })}:${day}:${place}:${of}`,
      `${toPrefix({ platform, channelId, ...workspace })}:${day}:${of}`,
      ...(workspace === undefined ? [] : [`${toPrefix({ platform, ...workspace })}:${day}:${of}`]),
      `${toPrefix("everyone")}:${day}:${of}`,
    ];
    const counts = toCounts(used);
    return Object.keys(counts).length === 0 ? [] : rows.map((row) => ({ row, counts, ttlMs: KEPT_MS }));
  }

  return {
    toAdditions,
    async note(once, by, used) {
      const additions = toAdditions(by, used);
      if (additions.length === 0) return;
      const onFailure = (err: unknown) => log.warn({ err }, "usage could not be counted");
      await persist(() => counters.add(once, additions), onFailure);
    },
    readMonth,
    async readTable(subject) {
      const people = await listPeople(subject === "everyone" ? undefined : subject.platform);
      const rows = people.map(([, parts, counts]) => ({ ...toNames(parts), ...toAmounts(counts) }));
      return rows.filter((row) => isOf(row, subject)).toSorted((one, other) => (one.day < other.day ? -1 : 1));
    },
    async exportAuthor(platform, authorId) {
      const days = new Map<string, Amounts>();
      for (const [row, counts] of await counters.list(`${toPrefix({ platform, authorId })}:`)) {
        const { day } = readParts(row);
        days.set(day, addAmounts(days.get(day) ?? NOTHING, toAmounts(counts)));
      }
      const own = [...days].map(([day, used]) => ({ day, ...used }));
      return own.toSorted((one, other) => (one.day < other.day ? -1 : 1));
    },
    async forgetAuthor(platform, authorId) {
      const prefix = toPrefix({ platform, authorId });
      const pseudonym = `by:${toKeyPart(platform)}:${FORGOTTEN}${randomUUID()}`;
      for (const [row] of await counters.list(`${prefix}:`)) {
        await counters.rename(row, pseudonym + row.slice(prefix.length));
      }
    },
    async eraseWorkspace(platform, workspaceId) {
      const [of, at] = [toKeyPart(platform), toKeyPart(workspaceId)];
      for (const [row, parts] of await listPeople(platform)) if (parts.workspace === at) await counters.remove(row);
      for (const prefix of [`in:${of}:${at}:`, `at:${of}:${at}:`]) {
        for (const [row] of await counters.list(prefix)) await counters.remove(row);
      }
    },
  };
}

interface RowParts extends Record<"platform" | "author" | "day" | "workspace" | "channel" | "model", string> {}

/** Parses the key of a person's usage. */
function readParts(row: string): RowParts {
  const [, platform = "", author = "", day = "", workspace = "", channel = "", model = ""] = row.split(":");
  return { platform, author, day, workspace, channel, model };
}

function toNames({ platform, author, day, workspace, channel, model }: RowParts): Omit<UsageRow, keyof Amounts> {
  const nameOf = (part: string) => readKeyPart(part) ?? part;
  return {
    day,
    platform: nameOf(platform),
    workspaceId: nameOf(workspace),
    channelId: nameOf(channel),
    authorId: nameOf(author),
    model: nameOf(model),
  };
}

function isOf(row: UsageRow, subject: UsageSubject): boolean {
  if (subject === "everyone") return true;
  if ("authorId" in subject) return row.authorId === subject.authorId;
  const isThere = row.workspaceId === (subject.workspaceId ?? "");
  return isThere && (!("channelId" in subject) || row.channelId === subject.channelId);
}

/** For example "2 answers, 1,500 tokens (300 of them estimated), no images, 0.02 USD". */
export function describeAmounts(used: Amounts): string {
  const { answers, promptTokens, completionTokens, estimatedTokens, pictures } = used;
  const estimated = estimatedTokens === 0 ? "" : ` (${estimatedTokens.toLocaleString("en-US")} of them estimated)`;
  const tokens = count(promptTokens + completionTokens, "token");
  const sums = [count(answers, "answer"), tokens + estimated, count(pictures, "image")];
  return [...sums, ...describeCosts(used)].join(", ");
}

function describeCosts({ costs, unpriced }: Amounts): string[] {
  const sums = Object.entries(costs).filter(([, cost]) => cost > 0);
  if (sums.length === 0) return [];
  const without = unpriced === 0 ? "" : ` (not counting ${count(unpriced, "request")} to models that have no price)`;
  return [sums.map(([currency, cost]) => describeMoney(cost, currency)).join(" and ") + without];
}

const ROW_NAMES = ["day", "platform", "workspaceId", "channelId", "authorId", "model"] as const;
const COUNT_NAMES = [
  "answers",
  "requests",
  "promptTokens",
  "cachedTokens",
  "completionTokens",
  "estimatedTokens",
  "pictures",
  "unpriced",
] as const;

export function toUsageCsv(rows: readonly UsageRow[]): string {
  const currencies = [...new Set(rows.flatMap(({ costs }) => Object.keys(costs)))].toSorted();
  const head = [...ROW_NAMES, ...COUNT_NAMES, ...currencies.map((currency) => `cost${currency}`)];
  const lines = rows.map((row) => [
    ...ROW_NAMES.map((name) => toCell(row[name])),
    ...COUNT_NAMES.map((name) => row[name]),
    ...currencies.map((currency) => (row.costs[currency] ?? 0) / 1e9),
  ]);
  return `${[head, ...lines].map((cells) => cells.join(",")).join("\r\n")}\r\n`;
}

/** Formats a CSV cell. Puts an apostrophe before a formula, because spreadsheets would run it. */
function toCell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Formats billionths, for example 1,500,000,000 as "1.50 USD". Small amounts get as many digits as they need. */
export function describeMoney(billionths: number, currency: string): string {
  const sum = billionths / 1e9;
  const digits = sum === 0 || Math.abs(sum) >= 0.01 ? 2 : 6;
  return `${sum.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: digits })} ${currency}`;
}

function count(number: number, noun: string): string {
  return `${number === 0 ? "no" : number.toLocaleString("en-US")} ${noun}${number === 1 ? "" : "s"}`;
}

export const NOTHING: Amounts = Object.freeze({
  answers: 0,
  requests: 0,
  promptTokens: 0,
  cachedTokens: 0,
  completionTokens: 0,
  estimatedTokens: 0,
  pictures: 0,
  unpriced: 0,
  costs: {},
});

/** A missing or damaged value counts as zero. */
function readAmounts(value: unknown): Amounts {
  const { success, data } = amounts.safeParse(value);
  return success ? data : NOTHING;
}

function addAmounts(one: Amounts, other: Partial<Amounts>): Amounts {
  const costs = { ...one.costs };
  for (const [currency, cost] of Object.entries(other.costs ?? {})) costs[currency] = (costs[currency] ?? 0) + cost;
  return {
    answers: one.answers + (other.answers ?? 0),
    requests: one.requests + (other.requests ?? 0),
    promptTokens: one.promptTokens + (other.promptTokens ?? 0),
    cachedTokens: one.cachedTokens + (other.cachedTokens ?? 0),
    completionTokens: one.completionTokens + (other.completionTokens ?? 0),
    estimatedTokens: one.estimatedTokens + (other.estimatedTokens ?? 0),
    pictures: one.pictures + (other.pictures ?? 0),
    unpriced: one.unpriced + (other.unpriced ?? 0),
    costs,
  };
}

/** Returns the amounts that are not zero. Each cost has the name of its currency. */
function toCounts({ costs = {}, ...others }: Partial<Amounts>): Counts {
  const sums = Object.entries(costs).map(([currency, cost]) => [COST + currency, cost] as const);
  return Object.fromEntries([...Object.entries(others), ...sums].filter(([, by]) => by > 0));
}

function toAmounts(counts: Counts): Amounts {
  const costs = Object.entries(counts).flatMap(([name, by]) =>
    name.startsWith(COST) ? [[name.slice(COST.length), by] as const] : [],
  );
  return readAmounts({ ...NOTHING, ...counts, costs: Object.fromEntries(costs) });
}

function toPrefix(subject: UsageSubject): string {
  if (subject === "everyone") return "all";
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
