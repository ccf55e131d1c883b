import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { z } from "zod";
import { persist } from "../concurrency/retry.ts";
import type { Author, ReplyAddress } from "../port/events.ts";
import { idsOf, isWhole } from "../port/identity.ts";
import type { Addition, Counts } from "../store/counters.ts";
import { readKeyPart, toKeyPart, toOwnerKey } from "../store/key-part.ts";
import type { Stores } from "../store/keyv.ts";
import { walk } from "../store/values.ts";

const NAMESPACE = "usage";
const DAYS_OF_MONTH = Array.from({ length: 31 }, (_, index) => String(index + 1).padStart(2, "0"));
/** Thirteen months: this one and a whole year before it. */
const KEPT_MS = 400 * 86_400_000;
/** Parts of keys are encoded, so that none of them begins with it: see `toKeyPart`. */
const FORGOTTEN = "@";
const COST = "cost:";

const amounts = z.object({
  answers: z.number(),
  /** Requests to the gateway. An answer that uses tools takes several. */
  requests: z.number().default(0),
  promptTokens: z.number(),
  /** The part of the prompts that the gateway had read before, where it says so. */
  cachedTokens: z.number().default(0),
  completionTokens: z.number(),
  /** The part of prompts and answers that was estimated, because the gateway did not count it. */
  estimatedTokens: z.number(),
  pictures: z.number(),
  /** Requests to models that have no price, where the gateway does not tell the cost either. */
  unpriced: z.number().default(0),
  /** By currency, in billionths of one. */
  costs: z.record(z.string(), z.number()).default({}),
});

const inWorkspace = z.object({ workspaceId: z.string() });

export type Amounts = z.infer<typeof amounts>;

/** A person's use on one day in UTC, such as "2026-11-20". */
export interface OwnUsage extends Amounts {
  day: string;
}

export type UsageSubject =
  | { platform: string; authorId: string }
  | { platform: string; channelId: string; workspaceId?: string }
  | { platform: string; workspaceId: string }
  | "everyone";

/** The person, the place and the model of a use. */
export interface UsedBy {
  author: Pick<Author, "id">;
  reply: Pick<ReplyAddress, "platform" | "channelId" | "workspaceId">;
  /** The model's name; absent where none was asked. */
  model?: string;
}

/** The usage by one person of one model in one channel on one day. Ids that a platform lacks are empty. */
export interface UsageRow extends Amounts {
  day: string;
  platform: string;
  workspaceId: string;
  channelId: string;
  /** A made-up name that begins with "@" for people whose data was erased. */
  authorId: string;
  model: string;
}

/** Exact counts by day and model, for each person, channel, workspace and all. Kept for thirteen months. */
export interface Usage {
  /** Counts for all four, once for each `once`. Never rejects: a turn must not fail because it was counted. */
  note(once: string, by: UsedBy, used: Partial<Amounts>): Promise<void>;
  /** The increments that `note` would make, to be made in one step with others. */
  toAdditions(by: UsedBy, used: Partial<Amounts>): Addition[];
  /** Sums up the current month in UTC. Rejects when the store does not answer. */
  readMonth(subject: UsageSubject): Promise<Amounts>;
  /** Sums up the current month of a person under all ids that are theirs alone. Rejects when the store does not answer. */
  readOwnMonth(platform: string, author: Pick<Author, "id" | "former">): Promise<Amounts>;
  /** Everything that is kept, by day, person, channel and model, oldest first. Rejects when the store does not answer. */
  readTable(subject: UsageSubject): Promise<UsageRow[]>;
  /** Resolves to everything that is kept of a person, oldest first. Rejects when the store does not answer. */
  exportAuthor(platform: string, authorId: string): Promise<OwnUsage[]>;
  /** Takes a person's name from what they used. All sums stay. */
  forgetAuthor(platform: string, authorId: string): Promise<void>;
  /** Erases what was used in a workspace, of its people and channels too. */
  eraseWorkspace(platform: string, workspaceId: string): Promise<void>;
}

/** `open` is for the namespaces of the older daily counts. */
export interface UsageOptions extends Pick<Stores, "open" | "counters"> {
  log: Logger;
  /** Unix milliseconds. */
  now(): number;
  /** Platforms that serve several workspaces: sums of channels from before keys named the workspace are no one's there. */
  severalWorkspaces?: ReadonlySet<string>;
}

export function createUsage(options: UsageOptions): Usage {
  const { open, counters, log, now, severalWorkspaces = new Set() } = options;
  const keyv = open(NAMESPACE);
  const toDay = () => new Date(now()).toISOString().slice(0, 10);

  /** Days as they were stored before, by their names. */
  async function readFormerDays(platform: string, authorId: string): Promise<Map<string, Amounts>> {
    const days = await Array.fromAsync(walk(open(`${NAMESPACE}:${toPrefix({ platform, authorId })}`)));
    return new Map(days.map(([day, value]) => [day, readAmounts(value)]));
  }

  async function readFormerMonth(subject: UsageSubject, month: string): Promise<Amounts[]> {
    const prefixes = [toPrefix(subject), ...toFormerPrefixes(subject)];
    const keys = prefixes.flatMap((prefix) => DAYS_OF_MONTH.map((day) => `${prefix}:${month}-${day}`));
    return (await keyv.getMany<unknown>(keys)).map(readAmounts);
  }

  async function readMonth(subject: UsageSubject): Promise<Amounts> {
    const month = toDay().slice(0, 7);
    const [rows, former] = await Promise.all([
      counters.list(`${toPrefix(subject)}:${month}`),
      readFormerMonth(subject, month),
    ]);
    return [...rows.map(([, counts]) => toAmounts(counts)), ...former].reduce<Amounts>(addAmounts, NOTHING);
  }

  /** The keys of a channel's sums from before keys named the workspace. */
  function toFormerPrefixes(subject: UsageSubject): string[] {
    if (subject === "everyone" || !("channelId" in subject) || subject.workspaceId === undefined) return [];
    const { platform, channelId } = subject;
    return severalWorkspaces.has(platform) ? [] : [toPrefix({ platform, channelId })];
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
    async readOwnMonth(platform, author) {
      const ids = idsOf(author).filter(isWhole);
      const months = await Promise.all(ids.map(({ id }) => readMonth({ platform, authorId: id })));
      return months.reduce<Amounts>(addAmounts, NOTHING);
    },
    async readTable(subject) {
      const people = await listPeople(subject === "everyone" ? undefined : subject.platform);
      const rows = people.map(([, parts, counts]) => ({ ...toNames(parts), ...toAmounts(counts) }));
      return rows.filter((row) => isOf(row, subject)).toSorted((one, other) => (one.day < other.day ? -1 : 1));
    },
    async exportAuthor(platform, authorId) {
      const days = await readFormerDays(platform, authorId);
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
      for (const day of (await readFormerDays(platform, authorId)).keys()) await keyv.delete(`${prefix}:${day}`);
    },
    async eraseWorkspace(platform, workspaceId) {
      const [of, at] = [toKeyPart(platform), toKeyPart(workspaceId)];
      for (const [row, parts] of await listPeople(platform)) if (parts.workspace === at) await counters.remove(row);
      for (const prefix of [`in:${of}:${at}:`, `at:${of}:${at}:`]) {
        for (const [row] of await counters.list(prefix)) await counters.remove(row);
      }
      for (const [key, value] of await Array.fromAsync(walk(keyv))) {
        const isIn = inWorkspace.safeParse(value).data?.workspaceId === workspaceId;
        if (isIn && key.split(":")[1] === of) await keyv.delete(key);
      }
    },
  };
}

interface RowParts extends Record<"platform" | "author" | "day" | "workspace" | "channel" | "model", string> {}

/** The parts of a person's row, as they are stored. */
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

/** Such as "2 answers, 1,500 tokens (300 of them estimated), no pictures, 0.02 USD". */
export function describeAmounts(used: Amounts): string {
  const { answers, promptTokens, completionTokens, estimatedTokens, pictures } = used;
  const estimated = estimatedTokens === 0 ? "" : ` (${estimatedTokens.toLocaleString("en-US")} of them estimated)`;
  const tokens = count(promptTokens + completionTokens, "token");
  const sums = [count(answers, "answer"), tokens + estimated, count(pictures, "picture")];
  return [...sums, ...describeCosts(used)].join(", ");
}

function describeCosts({ costs, unpriced }: Amounts): string[] {
  const sums = Object.entries(costs).filter(([, cost]) => cost > 0);
  if (sums.length === 0) return [];
  const without = unpriced === 0 ? "" : ` (without ${count(unpriced, "request")} to models that have no price)`;
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

/** A line for each row, and a column for each currency. */
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

/** Programs that open such files take a text that begins like a formula for one. */
function toCell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Such as "1.50 USD" for 1,500,000,000 billionths; small sums with as many digits as it takes. */
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

/** An absent or damaged value counts as nothing. */
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

/** The non-zero amounts, each cost under the name of its currency. */
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
