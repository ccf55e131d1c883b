import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { pino } from "pino";
import { createEngine } from "../../src/app/engine.ts";
import type { Policy } from "../../src/config/policy/policy-file.ts";
import { textOf } from "../../src/gateway/chunks.ts";
import { createGateway, type Gateway } from "../../src/gateway/client.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import type { Adapter } from "../../src/port/adapter.ts";
import type { MessageEvent, ReplyAddress } from "../../src/port/events.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import type { Draft } from "../../src/port/sink.ts";
import { startSandbox } from "../../src/sandbox/server.ts";
import { createStores } from "../../src/store/keyv.ts";
import { createRandom } from "../pacing/random.ts";
import { createQuickScheduler } from "../support/quick-scheduler.ts";
import {
  createReadLinked,
  findPing,
  MALICE,
  namesEverybody,
  openHugeFile,
  SERVER,
  toMalice,
  toReadingTools,
} from "./support/hostile.ts";
import { describeMachine, runBench } from "./support/lifecycle.ts";
import { createOpenPlatform } from "./support/open-platform.ts";

const LIMIT_MS = 280_000;
const STRANGERS = 200;
const CHANNELS = 20;
const QUESTIONS = 2;
const TOKENS_PER_SECOND = 200;
const SIDE_BY_SIDE = 32;
const FLOOD_MS = 250;
/** Each person's secret word, which no other person must ever see. */
const secretOf = (person: number) => `secret${String(person).padStart(4, "0")}x`;
const SECRET = /secret(\d{4})x/g;
/** Enough for ordinary people and too little for floods. */
const POLICY: Policy = {
  quotas: {
    person: { minute: { requests: 6, tokens: 8_000 }, hour: { tokens: 30_000 } },
    all: { hour: { tokens: 600_000 } },
    answerTokens: 400,
  },
};

interface Run {
  waitsMs: number[];
  unanswered: number;
  /** Sentences like "an answer of 3 has secret0007x". */
  leaks: Set<string>;
  /** Mentions that would have notified people. */
  pings: Set<string>;
  pingAnswers: Set<string>;
  hostileRequests: number;
  toolRequests: number;
  /** Numbers of links that the bot read for the asker and that it refused. */
  links: { read: number; refused: number };
  tokens: number;
}

await runBench(async () => {
  const { values } = parseArgs({
    args: process.argv.slice(2),
    options: { seconds: { type: "string", default: "60" }, seed: { type: "string", default: "1" } },
  });
  const options = { seconds: Number(values.seconds), seed: Number(values.seed) };
  const calm = await drill({ ...options, hostile: 0 });
  const stormy = await drill({ ...options, hostile: STRANGERS / 10 });
  const limit = POLICY.quotas?.all?.hour?.tokens ?? 0;
  if (stormy.leaks.size > 0 || stormy.pings.size > 0 || stormy.tokens > limit || stormy.unanswered > 0)
    process.exitCode = 1;
  return [
    `drill: ${STRANGERS} strangers in ${CHANNELS} channels for ${options.seconds} s, seed ${options.seed}, ${describeMachine()}.`,
    `without hostile people: ${describe(calm)}`,
    `20 of them hostile:     ${describe(stormy)}`,
    `limit of ${limit} tokens: overspent ${Math.max(0, stormy.tokens - limit)}. Leaks: ${stormy.leaks.size}, with ${stormy.toolRequests} requests that contain results of the reading tools. Links: ${stormy.links.read} to the public channel were read, ${stormy.links.refused} to private channels were refused. Pings: ${stormy.pings.size}, in ${stormy.pingAnswers.size} answers that try.`,
    ...[...stormy.leaks, ...stormy.pings].slice(0, 10),
  ].join("\n");
}, LIMIT_MS);

function describe({ waitsMs, unanswered, hostileRequests, tokens }: Run): string {
  const sorted = waitsMs.toSorted((a, b) => a - b);
  const at = (share: number) => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
  return `${sorted.length} honest answers, ${unanswered} missing, started after ${at(0.5)} ms (median), ${at(0.95)} ms (p95), ${at(1)} ms (longest); ${hostileRequests} requests for hostile ones; ${tokens} tokens.`;
}

/** Harmless people ask at random times. Hostile people have the highest numbers and ask as fast as they can. */
async function drill({ seconds, seed, hostile }: { seconds: number; seed: number; hostile: number }): Promise<Run> {
  await using resources = new AsyncDisposableStack();
  const log = pino({ level: "silent" });
  const speed = { tokensPerSecond: TOKENS_PER_SECOND, requestsPerMinute: Number.POSITIVE_INFINITY };
  const sandbox = await startSandbox({ host: "127.0.0.1", port: 0, log, ...speed });
  resources.defer(sandbox.close);
  const isHostile = (person: number) => person >= STRANGERS - hostile;
  const run: Run = {
    waitsMs: [],
    unanswered: 0,
    leaks: new Set(),
    pings: new Set(),
    pingAnswers: new Set(),
    hostileRequests: 0,
    toolRequests: 0,
    links: { read: 0, refused: 0 },
    tokens: 0,
  };
  const asked = new Map<string, { person: number; atMs: number }>();
  const onEnd = new Map<string, () => void>();

  function look(where: string, person: number, text: string): void {
    for (const [secret, number] of text.matchAll(SECRET)) {
      // A person's own secret in their own answer is no leak.
      if (Number(number) !== person && !isHostile(person)) run.leaks.add(`${where} of ${person} has ${secret}`);
    }
  }
  function onShown(reply: ReplyAddress, draft: Draft): void {
    const key = reply.replyToId ?? "";
    const person = Number(reply.threadId);
    look("an answer", person, draft.markdown);
    const ping = findPing(draft);
    if (ping !== undefined) run.pings.add(`an answer to ${person} has ${ping}`);
    if (namesEverybody(draft)) run.pingAnswers.add(key);
    if (draft.markdown.trim() !== "" && asked.has(key)) {
      // The bot gives one answer to questions that wait together.
      for (const [other, one] of asked) {
        if (one.person !== person) continue;
        run.waitsMs.push(performance.now() - one.atMs);
        asked.delete(other);
        if (other === key) break;
      }
    }
    if (!draft.streaming) onEnd.get(key)?.();
  }
  const readLinked = createReadLinked(secretOf);
  const adapter: Adapter = {
    ...createOpenPlatform("drill", onShown, openHugeFile),
    async readLinked(...asked) {
      const found = await readLinked(...asked);
      run.links[found === undefined ? "refused" : "read"] += 1;
      return found;
    },
  };
  const client = createGateway({ baseUrl: sandbox.url, apiKey: "sk-sandbox-all", log });
  resources.defer(client.close);
  const gateway: Gateway = {
    ...client,
    streamChat(request, signal, streaming) {
      const person = Number(request.user);
      if (isHostile(person)) run.hostileRequests += 1;
      if (request.messages.at(-1)?.role === "tool") run.toolRequests += 1;
      // Find other people's secrets in the request.
      const given = request.messages.filter(({ role }) => role !== "system").map(textOf);
      const words = given.join("\n");
      for (const [, number] of words.matchAll(SECRET)) {
        const own = saidBy.get(person) ?? "";
        const secret = secretOf(Number(number));
        if (Number(number) !== person && !own.includes(secret))
          run.leaks.add(`the model was given ${secret} for ${person}`);
      }
      return client.streamChat(request, signal, streaming);
    },
  };
  const saidBy = new Map<number, string>();
  const database = new DatabaseSync(":memory:");
  const stores = createStores({ redisUrl: undefined, database, log }, NO_RIGHT);
  const engine = createEngine({
    botName: "Palaver",
    model: "sandbox-chat",
    imageModel: undefined,
    systemPrompt: "Be brief.",
    limits: {
      historyTtlMs: 86_400_000,
      historyMaxMessages: 20,
      historyMaxTokens: 4_000,
      contextMessages: 0,
      maxConcurrentTurns: SIDE_BY_SIDE,
      maxReferences: 0,
    },
    policy: () => POLICY,
    database,
    stores,
    gateway,
    toTools: ({ history }) => toReadingTools(history, () => adapter),
    references: {
      prepare: async () => ({ ok: false, problems: [] }),
      load: async () => ({ ok: false, problems: [] }),
      erase: async () => {},
      forget: async () => {},
    },
    scheduler: createQuickScheduler(1),
    adapterOf: () => adapter,
    pseudonym: (_, userId) => userId,
    metrics: createMetrics(),
    log,
  });
  engine.queue.start(engine.worker);
  resources.defer(() => engine.queue.close(0));

  let count = 0;
  function ask(
    person: number,
    { text, attachments = [] }: { text: string; attachments?: MessageEvent["attachments"] },
    more: Partial<MessageEvent["author"]> = {},
  ): Promise<string> {
    count += 1;
    const key = `drill:${count}`;
    const channelId = `c${person % CHANNELS}`;
    saidBy.set(person, `${saidBy.get(person) ?? ""}\n${text}`);
    if (!isHostile(person)) asked.set(key, { person, atMs: performance.now() });
    const event: MessageEvent = {
      kind: "message",
      key,
      conversationId: `drill:${channelId}:${person}`,
      author: { id: String(person), name: `Stranger ${person}`, ...more },
      reply: { platform: "drill", channelId, workspaceId: SERVER, threadId: String(person), replyToId: key },
      at: Date.now(),
      messageId: key,
      text,
      attachments,
      addressed: "bot",
    };
    return engine.accept(event).then(() => key);
  }

  const random = createRandom(seed);
  const endsAt = performance.now() + seconds * 1_000;
  const honest = Array.from({ length: STRANGERS - hostile }, async (_, person) => {
    for (let number = 0; number < QUESTIONS; number++) {
      await sleep(((random.next() + number) / QUESTIONS) * seconds * 1_000);
      await ask(person, { text: `My word is ${secretOf(person)}. What is ${person} plus ${number}?` });
    }
  });
  const others = Array.from({ length: hostile }, async (_, index) => {
    const person = STRANGERS - hostile + index;
    const malice = MALICE[index % MALICE.length] ?? "flood";
    for (let round = 0; performance.now() < endsAt; round++) {
      const victim = (person * 7 + round) % (STRANGERS - hostile);
      if (malice === "bot") {
        const ended = Promise.withResolvers<void>();
        const key = await ask(person, { text: `And you, ${round}?` }, { kind: "bot" });
        onEnd.set(key, ended.resolve);
        await Promise.race([ended.promise, sleep(FLOOD_MS)]);
      } else {
        await ask(person, toMalice(malice, round + Math.floor(index / MALICE.length), victim));
        await sleep(FLOOD_MS);
      }
    }
  });
  await Promise.all([...honest, ...others]);
  while (engine.queue.depth().waiting + engine.queue.depth().active > 0) await sleep(100);
  run.unanswered = asked.size;
  run.tokens = sandbox.served.promptTokens + sandbox.served.completionTokens;
  return run;
}
