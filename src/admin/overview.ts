import type { Insight } from "../insight/insight.ts";
import type { Story } from "../insight/story.ts";
import type { TurnRecords } from "../turn/records.ts";
import type { UsageRow } from "../usage/usage.ts";
import type { Names } from "./names.ts";
import type { Overview, Vote } from "./page/wire.ts";
import { createKept, readMonth } from "./spending.ts";

const DAY_MS = 86_400_000;
const MAX_JUDGEMENTS = 20;
/** The overview is cached this long, because counting its ratings reads the records of all recent answers. */
const KEPT_MS = 15_000;

export interface OverviewDeps {
  insight: { turns: Insight["turns"]; trends: Insight["trends"] };
  records: TurnRecords;
  readUsed(): Promise<UsageRow[]>;
  names: Names;
  /** Unix milliseconds. */
  now(): number;
}

/** Reads failures, this month's cost and ratings. The result can be `KEPT_MS` old. */
export function createReadOverview(deps: OverviewDeps): () => Promise<Overview> {
  return createKept(() => readOverview(deps), KEPT_MS, deps.now);
}

async function readOverview(deps: OverviewDeps): Promise<Overview> {
  const { insight, names, readUsed, now } = deps;
  const [stories, failures, day, month, used] = await Promise.all([
    insight.turns.turns(),
    insight.turns.failures(),
    insight.trends.read("day"),
    insight.trends.read("month"),
    readUsed(),
  ]);
  const { good = 0, bad = 0 } = sumEach(month.counts.votes);
  const recent = failures.filter(({ acceptedAt, endedAt = acceptedAt }) => now() - endedAt < DAY_MS);
  return {
    turns: sumEach(day.counts.turns),
    pictures: sumEach(day.counts.pictures),
    failures: await names.stories(recent),
    month: await readMonth(used, stories, names, now()),
    votes: { good, bad },
    judgements: await readJudgements(stories, deps),
  };
}

/** Reads ratings from the turns' records, because `/forget` erases them there. */
async function readJudgements(
  stories: readonly Story[],
  { records, names }: Pick<OverviewDeps, "records" | "names">,
): Promise<Vote[]> {
  const newest = new Map(stories.toReversed().map((story) => [story.turnId, story]));
  const known = new Map(stories.map(({ reply, author }) => [`${reply.platform} ${author.id}`, author.name]));
  const judged = await Promise.all(
    [...newest.values()].map(async (story) => {
      const { feedback = {}, reasons = {} } = (await records.load(story.turnId)) ?? {};
      return Object.entries(feedback).map(([by, word]) => ({ story, by, word, reason: reasons[by] }));
    }),
  );
  const shown = judged.flat().filter(({ word, reason }) => word === "bad" || reason !== undefined);
  return Promise.all(
    shown
      .toSorted((one, other) => other.story.acceptedAt - one.story.acceptedAt)
      .slice(0, MAX_JUDGEMENTS)
      .map(async ({ story: { turnId, acceptedAt, reply }, by, word, reason }) => ({
        turnId,
        askedAt: acceptedAt,
        isGood: word === "good",
        ...(reason !== undefined && { reason }),
        by: known.get(`${reply.platform} ${by}`) ?? (await names.person(by, reply)) ?? by,
        place: (await names.place(reply)).text,
      })),
  );
}

function sumEach(series: Readonly<Record<string, readonly number[]>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(series).map(([label, points]) => [label, points.reduce((sum, point) => sum + point, 0)]),
  );
}
