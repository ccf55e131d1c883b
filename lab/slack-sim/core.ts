import type { Changes } from "../support/changes.ts";
import type { Clock } from "./clock.ts";
import type { Delivery } from "./delivery.ts";
import type { Limits } from "./limits.ts";
import type { Violations } from "./violations.ts";
import type { Channel, Json, Message, Organisation, Workspace } from "./world.ts";

export interface Core {
  clock: Clock;
  changes: Changes;
  violations: Violations;
  limits: Limits;
  app: AppIdentity;
  workspaces: Map<string, Workspace>;
  organisations: Map<string, Organisation>;
  newId(prefix: string): string;
  /** Returns a message timestamp in Slack's format, later than all earlier ones. */
  newTs(): string;
  /** The simulator's origin, without a trailing slash. */
  origin(): string;
  /** Sends the app an event if the app has subscribed to such events. */
  emit(workspace: Workspace, event: Json, about?: EventContext): Delivery | undefined;
}

export interface EventContext {
  /** True if the event is about the whole organisation and names no workspace. */
  isOrgWide?: true;
  channel?: Channel;
  message?: Message;
}

export interface AppIdentity {
  id: string;
  name: string;
  appToken: string;
  signingSecret: string;
  clientId: string;
  clientSecret: string;
  /** The names in the manifest's `bot_events`. */
  events: Set<string>;
}

/** Creates readable ids that are unique within one simulator. */
export function createIds(): (prefix: string) => string {
  let count = 0;
  return (prefix) => {
    count += 1;
    return `${prefix}0${count.toString(36).toUpperCase().padStart(8, "0")}`;
  };
}

/** Creates timestamps in seconds with six decimals. Each is later than the one before. */
export function createTimestamps(now: () => number): () => string {
  let lastMicros = 0;
  return () => {
    lastMicros = Math.max(lastMicros + 1, Math.floor(now() * 1000));
    return `${Math.floor(lastMicros / 1e6)}.${String(lastMicros % 1e6).padStart(6, "0")}`;
  };
}
