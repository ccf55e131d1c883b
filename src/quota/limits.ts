import {
  MEASURES,
  type QuotaMeasure,
  type QuotaScope,
  type Quotas,
  type QuotaWindow,
  SCOPES,
  WINDOWS,
} from "../config/policy/quotas.ts";
import { toKeyPart } from "../store/key-part.ts";
import { BILLIONTHS } from "./cost.ts";

/** A window is named by the beginning of its ISO date and time, with this many characters. */
const NAME_CHARS: Record<QuotaWindow, number> = { minute: 16, hour: 13, day: 10, month: 7 };
const DURATION_MS = { minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const;

/** The person, channel and workspace of a request. The person is a pseudonym, so that stored counts identify no one. */
export interface Asker {
  platform: string;
  pseudonym: string;
  channelId: string;
  workspaceId?: string;
}

export interface QuotaLimit {
  scope: QuotaScope;
  window: QuotaWindow;
  measure: QuotaMeasure;
  /** The maximum. Money is in billionths. */
  most: number;
  row: string;
  /** The person, channel or workspace whose usage counts. */
  subject: string;
  /** When the count resets, in Unix milliseconds. */
  endsAt: number;
}

export interface Standing extends QuotaLimit {
  used: number;
  /** The amount that is reserved for running requests. */
  held: number;
  isLifted: boolean;
}

/** Returns all limits for a request. Longer windows come first, because they reset last. */
export function toLimits(quotas: Quotas | undefined, asker: Asker, now: number): QuotaLimit[] {
  return SCOPES.flatMap((scope) => {
    const subject = toSubject(scope, asker);
    const windows = quotas?.[scope];
    if (windows === undefined || subject === undefined) return [];
    return WINDOWS.flatMap((window) => toWindowLimits(windows[window], { scope, subject, window }, now));
  }).toSorted((one, other) => other.endsAt - one.endsAt);
}

function toWindowLimits(
  amounts: NonNullable<Quotas[QuotaScope]>[QuotaWindow] | undefined,
  of: Pick<QuotaLimit, "scope" | "subject" | "window">,
  now: number,
): QuotaLimit[] {
  const row = `limit:${of.subject}:${of.window}:${new Date(now).toISOString().slice(0, NAME_CHARS[of.window])}`;
  return MEASURES.flatMap((measure) => {
    const most = amounts?.[measure];
    if (most === undefined) return [];
    const inUnits = measure === "money" ? Math.floor(most * BILLIONTHS) : most;
    return { ...of, measure, most: inUnits, row, endsAt: endOf(of.window, now) };
  });
}

/** Returns undefined if the request has no such subject. A DM, for example, can have no workspace. */
export function toSubject(scope: QuotaScope, asker: Asker): string | undefined {
  const { platform, pseudonym, channelId, workspaceId } = asker;
  if (scope === "all") return "all";
  const of = `${scope}:${toKeyPart(platform)}`;
  if (scope === "person") return `${of}:${toKeyPart(pseudonym)}`;
  if (scope === "channel") return `${of}:${toKeyPart(workspaceId ?? "")}:${toKeyPart(channelId)}`;
  return workspaceId === undefined ? undefined : `${of}:${toKeyPart(workspaceId)}`;
}

function endOf(window: QuotaWindow, now: number): number {
  if (window !== "month") return (Math.floor(now / DURATION_MS[window]) + 1) * DURATION_MS[window];
  const date = new Date(now);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
}
