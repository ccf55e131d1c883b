import type { Changes } from "./changes.ts";
import type { Clock } from "./clock.ts";
import type { Delivery } from "./delivery.ts";
import type { Limits } from "./limits.ts";
import type { Violations } from "./violations.ts";
import type { Channel, Json, Message, Workspace } from "./world.ts";

/** What every part of the simulator shares. */
export interface Core {
  clock: Clock;
  changes: Changes;
  violations: Violations;
  limits: Limits;
  app: AppIdentity;
  /** By id. */
  workspaces: Map<string, Workspace>;
  newId(prefix: string): string;
  /** A timestamp as Slack gives it to messages, later than every one given before. */
  newTs(): string;
  /** Where the simulator listens, without a slash at the end. */
  origin(): string;
  /** Tells the app of an event, when it asked for events of this kind. */
  emit(workspace: Workspace, event: Json, about?: EventContext): Delivery | undefined;
}

export interface EventContext {
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
  /** Names as in the manifest's `bot_events`. */
  events: Set<string>;
}

/** Readable ids that are unique within one simulator. */
export function createIds(): (prefix: string) => string {
  let count = 0;
  return (prefix) => {
    count += 1;
    return `${prefix}0${count.toString(36).toUpperCase().padStart(8, "0")}`;
  };
}

/** Timestamps in seconds with six decimals, strictly rising. */
export function createTimestamps(now: () => number): () => string {
  let lastMicros = 0;
  return () => {
    lastMicros = Math.max(lastMicros + 1, Math.floor(now() * 1000));
    return `${Math.floor(lastMicros / 1e6)}.${String(lastMicros % 1e6).padStart(6, "0")}`;
  };
}
