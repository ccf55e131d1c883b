import type { DatabaseSync } from "node:sqlite";
import type { Logger } from "pino";
import type { LimitsConfig } from "../config/config.ts";
import type { Policy } from "../config/policy/policy-file.ts";
import type { Gateway } from "../gateway/client.ts";
import type { History } from "../history/history.ts";
import type { Insight } from "../insight/insight.ts";
import type { TurnWatch } from "../insight/turn-watch.ts";
import type { Files } from "../media/files.ts";
import type { References } from "../media/reference.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { ModelLists } from "../models/model-list.ts";
import type { Scheduler } from "../pacing/scheduler.ts";
import type { Access } from "../policy/access.ts";
import type { Audit } from "../policy/audit.ts";
import type { ChatRules } from "../policy/chat-rules.ts";
import type { Models } from "../policy/models.ts";
import type { Refusals } from "../policy/refusals.ts";
import type { Adapter } from "../port/adapter.ts";
import type { Right } from "../port/right.ts";
import type { Queue } from "../queue/queue.ts";
import type { Quota } from "../quota/quota.ts";
import type { SinkOf } from "../reply/paced-sink.ts";
import type { Settings } from "../settings/settings.ts";
import type { Stores } from "../store/keyv.ts";
import type { Usage } from "../usage/usage.ts";

/**
 * The process creates `Base` once, and the engine creates `Services` once. A function destructures the services that it
 * needs in its first line. A module declares its own interface only for things that no other module needs.
 */

/** The configuration, and everything outside this process. */
export interface Base {
  log: Logger;
  metrics: Metrics;
  scheduler: Scheduler;
  database: DatabaseSync;
  stores: Omit<Stores, "isReachable" | "close">;
  gateway: Gateway;
  /** Throws if the platform is not enabled. */
  adapterOf(platform: string): Adapter;
  pseudonym(platform: string, userId: string): string;
  /** The current policy. Call this for each decision, because the file can change while the service runs. */
  policy(): Policy;
  /** Makes images available to the gateway. */
  references: References;
  /** Collects turns for the dashboard; absent if there is no dashboard. */
  insight?: Insight | undefined;
  botName: string;
  model: string;
  systemPrompt: string;
  /** The default image model; undefined: the bot creates no images. */
  imageModel: string | undefined;
  limits: Omit<LimitsConfig, "shutdownGraceMs">;
}

/**
 * Services that nearly every module above the data layer uses. They write under `right`: the proof that this process
 * owns its current piece of work.
 */
export interface Services extends Base {
  right: Right;
  /** Unix milliseconds. */
  now(): number;
  history: History;
  settings: Settings;
  access: Access;
  audit: Audit;
  chatRules: ChatRules;
  refusals: Refusals;
  usage: Usage;
  quota: Quota;
  /** Decides which models a person can use in a channel. */
  models: Models;
  modelLists: ModelLists;
  files: Files;
  queue: Queue;
  sinkOf: SinkOf;
  watch: Pick<TurnWatch, "begin" | "makeUp">;
}
