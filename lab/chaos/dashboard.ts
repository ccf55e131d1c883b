import type { Story, Trends } from "../../src/admin/page/wire.ts";
import { comeIn, PASSWORD } from "../support/administrator.ts";

export const DASHBOARD_ENV = { ADMIN_PASSWORD: PASSWORD };

/** The dashboard's totals for a run. */
export interface Board {
  turns: Readonly<Record<string, number>>;
  pictures: Readonly<Record<string, number>>;
  tools: Readonly<Record<string, number>>;
  /** Number of turns on the page of failures. */
  failures: number;
}

/** Reads the dashboard of one process. It shows all processes. */
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
