import type { Story } from "../insight/story.ts";
import type { Series } from "../insight/trends.ts";
import { describeMoney, type Usage, type UsageRow } from "../usage/usage.ts";
import type { Names } from "./names.ts";
import type { Month, Spent, Trends } from "./page/wire.ts";

const MAX_SPENT = 10;
/** The usage is cached this long, because each read loads all stored usage. */
const KEPT_MS = 60_000;
const DAY_MS = 86_400_000;
const BILLION = 1e9;
/** Prefix of the id that replaces an erased person, see `UsageRow`. */
const ERASED = "@";

/** Wraps `read` so that its result is reused for `keptMs`. A failure is not cached. */
export function createKept<T>(read: () => Promise<T>, keptMs: number, now: () => number): () => Promise<T> {
  let latest: { at: number; found: Promise<T> } | undefined;
  return () => {
    if (latest === undefined || now() - latest.at > keptMs) {
      const reading = { at: now(), found: read() };
      latest = reading;
      reading.found.catch(() => {
        if (latest === reading) latest = undefined;
      });
    }
    return latest.found;
  };
}

/** Reads the usage table. The rows can be a minute old. */
export function createReadUsed(usage: Usage, now: () => number): () => Promise<UsageRow[]> {
  return createKept(() => usage.readTable("everyone"), KEPT_MS, now);
}

export function toWireTrends(series: Series, used: readonly UsageRow[]): Trends {
  return { ...series, costs: toCosts(series.at, used) };
}

/**
 * Sums up the current UTC month and finds the people and channels with the highest cost. `stories` provides people's
 * names.
 */
export async function readMonth(
  used: readonly UsageRow[],
  stories: readonly Story[],
  names: Names,
  now: number,
): Promise<Month> {
  const month = new Date(now).toISOString().slice(0, 7);
  const rows = used.filter(({ day }) => day.startsWith(month));
  const known = new Map(stories.map(({ reply, author }) => [`${reply.platform} ${author.id}`, author.name]));

  async function namePerson(row: UsageRow): Promise<string> {
    if (row.authorId.startsWith(ERASED)) return "people whose data was erased";
    const { platform, authorId } = row;
    return known.get(`${platform} ${authorId}`) ?? (await names.person(authorId, row)) ?? authorId;
  }

  async function namePlace(row: UsageRow): Promise<string> {
    const { text, isDirect } = await names.place(row);
    return isDirect ? `${text} with ${await namePerson(row)}` : text;
  }

  const [people, places, models] = await Promise.all([
    sumBy(
      rows,
      ({ platform, authorId }) => (authorId.startsWith(ERASED) ? ERASED : `${platform} ${authorId}`),
      namePerson,
    ),
    sumBy(rows, names.placeKey, namePlace),
    sumBy(
      rows,
      ({ model }) => model,
      async ({ model }) => model || "(no model)",
    ),
  ]);
  return { month, all: sumUp(rows), unpriced: sum(rows, ({ unpriced }) => unpriced), people, places, models };
}

/** Returns each point's costs by currency. Empty unless points are days, because usage is stored by day. */
function toCosts(at: readonly number[], rows: readonly UsageRow[]): Record<string, number[]> {
  const areDays = at.length > 1 && (at[1] ?? 0) - (at[0] ?? 0) === DAY_MS;
  const costs: Record<string, number[]> = {};
  for (const row of areDays ? rows : []) {
    const point = at.findIndex((start) => toDay(start) === row.day);
    if (point === -1) continue;
    for (const [currency, billionths] of Object.entries(row.costs)) {
      const series = (costs[currency] ??= at.map(() => 0));
      series[point] = (series[point] ?? 0) + billionths / BILLION;
    }
  }
  return costs;
}

async function sumBy(
  rows: readonly UsageRow[],
  keyOf: (row: UsageRow) => string,
  nameOf: (row: UsageRow) => Promise<string>,
): Promise<Spent[]> {
  const most = [...Map.groupBy(rows, keyOf).values()]
    .toSorted((one, other) => costOf(other) - costOf(one) || tokensOf(other) - tokensOf(one))
    .slice(0, MAX_SPENT);
  return Promise.all(
    most.map(async (among) => ({ name: among[0] === undefined ? "" : await nameOf(among[0]), ...sumUp(among) })),
  );
}

function sumUp(rows: readonly UsageRow[]): Omit<Spent, "name"> {
  const costs = new Map<string, number>();
  for (const row of rows) {
    for (const [currency, cost] of Object.entries(row.costs)) costs.set(currency, (costs.get(currency) ?? 0) + cost);
  }
  return {
    answers: sum(rows, ({ answers }) => answers),
    tokens: tokensOf(rows),
    pictures: sum(rows, ({ pictures }) => pictures),
    cost: [...costs].map(([currency, cost]) => describeMoney(cost, currency)).join(" + "),
  };
}

function sum(rows: readonly UsageRow[], of: (row: UsageRow) => number): number {
  return rows.reduce((total, row) => total + of(row), 0);
}

function tokensOf(rows: readonly UsageRow[]): number {
  return sum(rows, ({ promptTokens, completionTokens }) => promptTokens + completionTokens);
}

function costOf(rows: readonly UsageRow[]): number {
  return sum(rows, ({ costs }) => Object.values(costs).reduce((total, cost) => total + cost, 0));
}

function toDay(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}
