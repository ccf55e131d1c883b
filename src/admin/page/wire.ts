/** The JSON that the dashboard's page and its server exchange. */

import type { ProcessReport } from "../../insight/processes.ts";
import type { Story } from "../../insight/story.ts";
import type { RangeName, Series } from "../../insight/trends.ts";
import type { Finding } from "../../port/finding.ts";
import type { Trace as StoredTrace } from "../../turn/record.ts";

export type { Percentiles } from "../../insight/trends.ts";
export type { Finding, RangeName, Story };

export interface NamedStory extends Story {
  /** For example "Example · Acme · #general". */
  place: string;
}

/** A process, with the names of the channels in which it answers. */
export interface NamedReport extends Omit<ProcessReport, "running"> {
  running: NamedStory[];
}

export interface Me {
  /** Null: no one is signed in. */
  name: string | null;
  /** The page sends it with every change, as `x-csrf-token`. */
  csrfToken: string;
  /** Whether there is a session that can be ended. */
  canSignOut: boolean;
  /** Whether signing in needs a password. */
  hasPassword: boolean;
}

/** The current work of all processes. */
export interface Now {
  /** The server's clock, Unix milliseconds. */
  at: number;
  processes: NamedReport[];
  /** Set if the store is unavailable, so other processes are unknown. */
  problem: string | null;
}

export const RANGE_NAMES = ["hour", "day", "week", "month", "quarter"] as const satisfies readonly RangeName[];

/** The usage of a person, a channel, a model or everyone this month. */
export interface Spent {
  name: string;
  answers: number;
  tokens: number;
  pictures: number;
  /** A formatted amount; "" without prices. */
  cost: string;
}

export interface Month {
  /** For example "2026-11", in UTC. */
  month: string;
  all: Omit<Spent, "name">;
  /** Requests with unknown cost. */
  unpriced: number;
  /** The ten with the highest usage, as in `places` and `models`. */
  people: Spent[];
  places: Spent[];
  models: Spent[];
}

export interface Vote {
  turnId: string;
  /** The time of the question, Unix milliseconds. */
  askedAt: number;
  isGood: boolean;
  /** In the person's own words. */
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
  /** Counts for the last 30 days. */
  votes: { good: number; bad: number };
  /** The latest answers' ratings that are bad or have a reason; newest first. */
  judgements: Vote[];
}

export interface Trends extends Series {
  /** By currency. Empty if nothing has a price, or if the points are not days. */
  costs: Record<string, number[]>;
}

export interface Section {
  title: string;
  findings: Finding[];
}

export interface Findings {
  /** Null: no check has run yet. */
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
  /** Null: the bot. */
  author: string | null;
  text: string;
  files: string[];
  /** Whether the model saw this message. */
  wasShown: boolean;
}

/** Settings under one heading: name and value. */
export interface SettingsPart {
  title: string;
  /** Explains the part, or says why it is empty. */
  about?: string;
  rows: Array<{ name: string; value: string }>;
}
