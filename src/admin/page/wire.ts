/** The JSON that the dashboard's page and its server exchange. */

import type { ProcessReport } from "../../insight/processes.ts";
import type { Story } from "../../insight/story.ts";
import type { RangeName, Series } from "../../insight/trends.ts";
import type { Finding } from "../../port/finding.ts";
import type { Trace as StoredTrace } from "../../turn/record.ts";

export type { Percentiles } from "../../insight/trends.ts";
export type { Finding, RangeName, Story };

export interface NamedStory extends Story {
  /** The channel, for example "Example · Acme · #general". */
  place: string;
}

/** A process's report with the names of the channels in which the process answers. */
export interface NamedReport extends Omit<ProcessReport, "running"> {
  running: NamedStory[];
}

export interface Me {
  /** Null if no one is signed in. */
  name: string | null;
  /** Sent with every change in the header `x-csrf-token`. */
  csrfToken: string;
  /** False if a proxy signed the administrator in, because the dashboard cannot end that session. */
  canSignOut: boolean;
  hasPassword: boolean;
}

export interface Now {
  /** The server's time in Unix milliseconds. */
  at: number;
  processes: NamedReport[];
  /** Set if the store is unavailable, so that other processes are unknown. */
  problem: string | null;
}

export const RANGE_NAMES = ["hour", "day", "week", "month", "quarter"] as const satisfies readonly RangeName[];

/** This month's usage of a person, a channel, a model or everyone. */
export interface Spent {
  name: string;
  answers: number;
  tokens: number;
  pictures: number;
  /** A formatted amount; "" if no prices are configured. */
  cost: string;
}

export interface Month {
  /** A month in UTC, for example "2026-11". */
  month: string;
  all: Omit<Spent, "name">;
  /** Number of requests without a known cost. */
  unpriced: number;
  /** The ten people with the highest usage. `places` and `models` also list the top ten. */
  people: Spent[];
  places: Spent[];
  models: Spent[];
}

export interface Vote {
  turnId: string;
  /** When the question was asked, in Unix milliseconds. */
  askedAt: number;
  isGood: boolean;
  reason?: string;
  by: string;
  place: string;
}

export interface Overview {
  /** Answers of the last 24 hours by outcome. */
  turns: Record<string, number>;
  /** Images of the last 24 hours by outcome. */
  pictures: Record<string, number>;
  /** Failures in the last 24 hours, newest first. */
  failures: NamedStory[];
  month: Month;
  /** Ratings of the last 30 days. */
  votes: { good: number; bad: number };
  /** Bad ratings and ratings with a reason, newest first. */
  judgements: Vote[];
}

export interface Trends extends Series {
  /** Costs by currency. Empty if no prices are configured or if a point is not a whole day. */
  costs: Record<string, number[]>;
}

export interface Section {
  title: string;
  findings: Finding[];
}

export interface Findings {
  /** Null if no check has run yet. */
  latest: { at: number; sections: Section[] } | null;
  isRunning: boolean;
}

/** The context that the model got for an answer, without any text from the conversation. */
export interface Trace extends Pick<StoredTrace, "at" | "model" | "dropped" | "hasOlder" | "notices" | "tokens"> {
  options: Record<string, unknown>;
  persona: string;
  shown: number;
  withFiles: number;
  fromChannel: number;
  calls: Array<{ name: string; at?: number; tookMs?: number; state: string }>;
}

export interface OpenedMessage {
  at: number;
  /** Null for the bot. */
  author: string | null;
  text: string;
  files: string[];
  wasShown: boolean;
}

/** Rows of settings under one title. */
export interface SettingsPart {
  title: string;
  /** Explains the section, or says why it is empty. */
  about?: string;
  rows: Array<{ name: string; value: string }>;
}
