import type { Story } from "../insight/story.ts";
import type { Series } from "../insight/trends.ts";
import { describeMoney, type Usage, type UsageRow } from "../usage/usage.ts";
import type { Subject, Trends } from "./page/wire.ts";

/** Longest list of channels, people and the like. */
const MAX_SUBJECTS = 20;
/** Reading all that was used costs as much as there is of it. */
const KEPT_MS = 60_000;
const DAY_MS = 86_400_000;
const BILLION = 1e9;

/** Reads the table of usage; the rows may be a minute old. */
export type ReadUsed = () => Promise<UsageRow[]>;

export function createReadUsed(usage: Pick<Usage, "readTable">, now: () => number): ReadUsed {
  let latest: { at: number; rows: Promise<UsageRow[]> } | undefined;
  return () => {
    if (latest === undefined || now() - latest.at > KEPT_MS) {
      const read = { at: now(), rows: usage.readTable("everyone") };
      latest = read;
      read.rows.catch(() => {
        if (latest === read) latest = undefined;
      });
    }
    return latest.rows;
  };
}

/** Adds what was used on the days of the series; names people as the latest turns do. */
export function toWireTrends(series: Series, used: readonly UsageRow[], latest: readonly Story[]): Trends {
  const since = toDay(series.at[0] ?? 0);
  const rows = used.filter(({ day }) => day >= since);
  const names = new Map(latest.map(({ reply, author }) => [`${reply.platform} ${author.id}`, author.name]));
  const person = ({ platform, authorId }: UsageRow) => names.get(`${platform} ${authorId}`) ?? authorId;
  return {
    ...series,
    since,
    costs: toCosts(series.at, rows),
    subjects: {
      model: sumBy(rows, ({ model }) => model || "(no model)"),
      channel: sumBy(rows, ({ platform, channelId }) => `${channelId} (${platform})`),
      person: sumBy(rows, (row) => `${person(row)} (${row.platform})`),
      workspace: sumBy(
        rows.filter(({ workspaceId }) => workspaceId !== ""),
        ({ platform, workspaceId }) => `${workspaceId} (${platform})`,
      ),
    },
  };
}

/** Costs by currency, for each point of a series whose points are days; empty for other series: use is counted by the day. */
function toCosts(at: readonly number[], rows: readonly UsageRow[]): Record<string, number[]> {
  const areDays = at.length > 1 && (at[1] ?? 0) - (at[0] ?? 0) === DAY_MS;
  const costs: Record<string, number[]> = {};
  for (const row of areDays ? rows : []) {
    const point = at.findIndex((start) => toDay(start) === row.day);
    for (const [currency, billionths] of Object.entries(row.costs)) {
      const series = (costs[currency] ??= at.map(() => 0));
      if (point !== -1) series[point] = (series[point] ?? 0) + billionths / BILLION;
    }
  }
  return costs;
}

function sumBy(rows: readonly UsageRow[], nameOf: (row: UsageRow) => string): Subject[] {
  const groups = Map.groupBy(rows, nameOf);
  return [...groups]
    .map(([name, among]) => ({ name, ...sumUp(among) }))
    .toSorted((one, other) => other.tokens - one.tokens || other.pictures - one.pictures)
    .slice(0, MAX_SUBJECTS);
}

function sumUp(rows: readonly UsageRow[]): Omit<Subject, "name"> {
  const costs = new Map<string, number>();
  for (const row of rows) {
    for (const [currency, cost] of Object.entries(row.costs)) costs.set(currency, (costs.get(currency) ?? 0) + cost);
  }
  const sum = (of: (row: UsageRow) => number) => rows.reduce((total, row) => total + of(row), 0);
  return {
    answers: sum(({ answers }) => answers),
    tokens: sum(({ promptTokens, completionTokens }) => promptTokens + completionTokens),
    pictures: sum(({ pictures }) => pictures),
    cost: [...costs].map(([currency, cost]) => describeMoney(cost, currency)).join(" + "),
  };
}

function toDay(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}
