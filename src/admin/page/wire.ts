/** The JSON that the dashboard's page and its server exchange. */

import type { ProcessReport } from "../../insight/processes.ts";
import type { RangeName, Series } from "../../insight/trends.ts";
import type { Finding } from "../../port/finding.ts";
import type { Sight as StoredSight } from "../../turn/sight.ts";

export type { Story } from "../../insight/story.ts";
export type { Percentiles } from "../../insight/trends.ts";
export type { Finding, ProcessReport, RangeName };

export interface Me {
  /** Null: nobody is in. */
  name: string | null;
  /** To be sent with every change, as `x-csrf-token`. */
  csrfToken: string;
  /** There is a session that can be ended. */
  canSignOut: boolean;
  /** A password lets in. */
  hasPassword: boolean;
}

/** The running work of all processes. */
export interface Now {
  /** The server's clock, Unix milliseconds. */
  at: number;
  processes: ProcessReport[];
  /** Set where the store does not answer, so that other processes cannot be seen. */
  problem: string | null;
}

export const RANGE_NAMES = ["hour", "day", "week", "month", "quarter"] as const satisfies readonly RangeName[];

export interface Subject {
  /** As people know it, as far as that is known. */
  name: string;
  answers: number;
  tokens: number;
  pictures: number;
  /** In words; "" where there are no prices. */
  cost: string;
}

export interface Trends extends Series {
  /** By currency, where the points are days; empty elsewhere, and where nothing has a price. */
  costs: Record<string, number[]>;
  /** The day in UTC from which on the subjects are summed up. */
  since: string;
  subjects: Record<"model" | "channel" | "person" | "workspace", Subject[]>;
}

/** One part of what the doctor tries. */
export interface Section {
  title: string;
  findings: Finding[];
}

/** The context that the model was given for an answer, without a word of the conversation. */
export interface Sight extends Pick<StoredSight, "at" | "model" | "dropped" | "hasOlder" | "notices" | "tokens"> {
  options: Record<string, unknown>;
  persona: string;
  shown: number;
  withFiles: number;
  fromChannel: number;
  calls: Array<{ name: string; at?: number; tookMs?: number; state: string }>;
}

/** One message of a conversation, opened. */
export interface OpenedMessage {
  at: number;
  /** Null: the bot. */
  author: string | null;
  text: string;
  files: string[];
  /** The model was shown it for the answer. */
  wasShown: boolean;
}

/** Heading, then what is in force: name and value. */
export interface SettingsPart {
  title: string;
  /** Explains the part, or says why it is empty. */
  about?: string;
  rows: Array<{ name: string; value: string }>;
}
