import type { Story, Trends } from "../src/admin/page/wire.ts";
import { comeIn, PASSWORD } from "../test/support/administrator.ts";

/** Environment variables that switch the dashboard on. */
export const DASHBOARD_ENV = { ADMIN_PASSWORD: PASSWORD };

/** The dashboard's numbers of a run, each as its pages show it. */
export interface Board {
  /** By outcome. */
  turns: Readonly<Record<string, number>>;
  pictures: Readonly<Record<string, number>>;
  /** By name: how often each was called. */
  tools: Readonly<Record<string, number>>;
  /** Turns that stand on the page of failures. */
  failures: number;
}

/** Asks one process, which tells of all of them. */
export async function readBoard(url: string): Promise<Board> {
  const admin = await comeIn(url);
  const { counts } = await admin.read<Trends>("trends/day");
  const failures = await admin.read<Story[]>("failures");
  return {
    turns: sumEach(counts.turns),
    pictures: sumEach(counts.pictures),
    tools: sumEach(counts.tools),
    failures: failures.length,
  };
}

function sumEach(series: Readonly<Record<string, readonly number[]>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(series).map(([label, points]) => [label, points.reduce((sum, point) => sum + point, 0)]),
  );
}
