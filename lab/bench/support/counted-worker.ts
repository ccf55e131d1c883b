/**
 * A process that answers questions on a platform that accepts everything. Usage: `node counted-worker.ts JSON`, see
 * `WorkerOptions`. It prints its progress as lines of JSON, and resumes unfinished work after a crash.
 */

import { pino } from "pino";
import { createEngine } from "../../../src/app/engine.ts";
import { retry } from "../../../src/concurrency/retry.ts";
import type { Policy } from "../../../src/config/policy/policy-file.ts";
import { createGateway } from "../../../src/gateway/client.ts";
import { createMetrics } from "../../../src/metrics/metrics.ts";
import type { MessageEvent } from "../../../src/port/events.ts";
import { NO_RIGHT } from "../../../src/port/right.ts";
import { openDatabase } from "../../../src/store/database.ts";
import { createStores } from "../../../src/store/keyv.ts";
import { createQuickScheduler } from "../../support/quick-scheduler.ts";
import { createOpenPlatform } from "./open-platform.ts";

export interface WorkerOptions {
  path: string;
  redisUrl?: string;
  gatewayUrl: string;
  policy: Policy;
  /** The first number of this process's questions, and the number after the last. */
  from: number;
  to: number;
}

/** `isAccepted` is true when the worker has accepted all questions; `open` is the number of unanswered ones. */
export interface WorkerReport {
  isAccepted: boolean;
  open: number;
}

const CONVERSATIONS = 50;
/** Number of people. It is large, because questions of one person that wait together would get one answer. */
const PEOPLE = 97;
const SIDE_BY_SIDE = 16;
/** Number of questions that are accepted in parallel. */
const AT_ONCE = 50;
const REPORT_MS = 100;

const given = JSON.parse(process.argv[2] ?? "{}") as WorkerOptions;
const log = pino({ level: process.env["LOG_LEVEL"] ?? "silent" }, pino.destination(2));
const database = openDatabase(given.path);
const stores = createStores({ redisUrl: given.redisUrl, database, log }, NO_RIGHT);

const adapter = createOpenPlatform("counted");

const engine = createEngine({
  botName: "Palaver",
  model: "sandbox-chat",
  imageModel: undefined,
  systemPrompt: "Be brief.",
  limits: {
    historyTtlMs: 86_400_000,
    historyMaxMessages: 6,
    historyMaxTokens: 2_000,
    contextMessages: 0,
    maxConcurrentTurns: SIDE_BY_SIDE,
    maxReferences: 0,
  },
  policy: () => given.policy,
  database,
  stores,
  gateway: createGateway({
    baseUrl: given.gatewayUrl,
    apiKey: "sk-sandbox-all",
    // The gateway reports its usage, so the bot estimates only answers that a crash interrupts.
    extraBody: { all: { stream_options: { include_usage: true } }, models: new Map() },
    log,
  }),
  toTools: () => [],
  references: {
    prepare: async () => ({ ok: false, problems: [] }),
    load: async () => ({ ok: false, problems: [] }),
    erase: async () => {},
    forget: async () => {},
  },
  scheduler: createQuickScheduler(1),
  adapterOf: () => adapter,
  pseudonym: (_, userId) => `u-${userId}`,
  metrics: createMetrics(),
  log,
});

let isAccepted = false;
setInterval(() => {
  const { waiting, active } = engine.queue.depth();
  const report: WorkerReport = { isAccepted, open: waiting + active };
  process.stdout.write(`${JSON.stringify(report)}\n`);
}, REPORT_MS);
engine.queue.start(engine.worker);
for (let from = given.from; from < given.to; from += AT_ONCE) {
  const numbers = Array.from({ length: Math.min(AT_ONCE, given.to - from) }, (_, index) => from + index);
  await Promise.all(numbers.map((number) => offer(toQuestion(number))));
}
isAccepted = true;

/** Retries as platforms do. */
function offer(question: MessageEvent): Promise<void> {
  return retry(
    () => engine.accept(question),
    { pausesMs: Array<number>(60).fill(1_000) },
    new AbortController().signal,
  );
}

function toQuestion(number: number): MessageEvent {
  const channelId = `c${number % CONVERSATIONS}`;
  const person = `person-${number % PEOPLE}`;
  return {
    kind: "message",
    key: `counted:event:${number}`,
    conversationId: `counted:${channelId}`,
    author: { id: person, name: person },
    reply: { platform: "counted", channelId, workspaceId: "w" },
    at: Date.now(),
    messageId: `counted:m${number}`,
    text: `What is ${number} in words?`,
    attachments: [],
    addressed: "bot",
  };
}
