import { createServer, request } from "node:http";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { openSlack, type Slack } from "../../lab/slack-sim/control.ts";
import type { Channel } from "../../lab/slack-sim/world.ts";
import { silent } from "../../lab/support/log.ts";
import { isRedisMissing, startRedis } from "../../lab/support/redis.ts";
import { makeDataDir, type RunningService, startService } from "../../lab/support/service.ts";
import { createHistory } from "../../src/history/history.ts";
import type { HistoryEntry } from "../../src/history/record.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { createStores } from "../../src/store/keyv.ts";
import { eventually } from "../support/eventually.ts";
import { listen, type OnEnd } from "../support/listen.ts";
import { readMetric, shareScene } from "./crew.ts";
import { answersIn } from "./slack-service.ts";

interface Watch {
  /** The methods with which this process has written to Slack. */
  calls: string[];
  /** Calls `act` once, before the proxy forwards the next call to Slack. */
  atNext(act: () => void): void;
}

type Watched = RunningService & Watch;

/** Forwards calls to Slack, and records the methods that write. */
async function watchCalls(target: string, onEnd: OnEnd): Promise<Watch & { apiUrl: string }> {
  const calls: string[] = [];
  let next = () => {};
  const { origin, pathname } = new URL(target);
  const server = createServer((asked, answer) => {
    const [, method = ""] = /\/((?:chat|assistant)\.[\w.]+)/.exec(asked.url ?? "") ?? [];
    if (method !== "") {
      calls.push(method);
      next();
      next = () => {};
    }
    const passed = request(`${origin}${asked.url}`, { method: asked.method, headers: asked.headers }, (given) => {
      answer.writeHead(given.statusCode ?? 500, given.headers);
      given.pipe(answer);
    });
    passed.on("error", () => answer.destroy());
    asked.pipe(passed);
  });
  const apiUrl = `${await listen(server, onEnd)}${pathname}`;
  return { calls, atNext: (act) => void (next = act), apiUrl };
}

/** A Slack, a Redis, and a function that starts processes of the service on them. */
async function startWorld(onEnd: OnEnd) {
  const redis = await startRedis();
  onEnd(redis.stop);
  const slack = await openSlack();
  onEnd(async () => {
    await slack.close();
    slack.assertClean();
  });
  const ada = slack.user({ name: "Ada" });
  const running = new Set<Watched>();

  async function open(): Promise<Watched> {
    const { apiUrl, ...watch } = await watchCalls(slack.apiUrl, onEnd);
    const { path, remove } = await makeDataDir();
    onEnd(remove);
    const service = await startService(path, {
      SLACK_BOT_TOKEN: slack.botToken,
      SLACK_API_URL: apiUrl,
      SLACK_SIGNING_SECRET: slack.signingSecret,
      REDIS_URL: redis.url,
      // The shutdown itself needs seven seconds, so no answer gets any time.
      SHUTDOWN_GRACE_SECONDS: "7",
    });
    onEnd(async () => void (await service.end("SIGKILL")));
    const watched: Watched = {
      ...service,
      ...watch,
      end(signal) {
        running.delete(watched);
        return service.end(signal);
      },
    };
    running.add(watched);
    return watched;
  }

  /** Two idle processes. Replaces those that earlier tests stopped. */
  async function untilRunning(): Promise<Watched[]> {
    await Promise.all(Array.from({ length: 2 - running.size }, open));
    const isAtRest = async (service: Watched) =>
      (await fetch(`${service.url}/readyz`)).ok && (await readMetric(service, "queue_active")) === 0;
    for (const service of running) await eventually(() => isAtRest(service)).toBe(true);
    return [...running];
  }

  return { redis, slack, ada, untilRunning };
}

describe.skipIf(isRedisMissing)("two processes on one Redis (needs redis-server)", () => {
  const shared = shareScene(startWorld);
  let rooms = 0;

  /** Two processes, and a separate channel for each test. */
  async function start() {
    const { slack, ada, redis, untilRunning } = shared();
    const [one, other] = await untilRunning();
    if (one === undefined || other === undefined) throw new Error("There is no process.");
    rooms += 1;
    const general = slack.channel({ name: `room-${rooms}`, members: [ada] });
    /** Makes this process the one that receives the events. */
    const hear = (service: RunningService) => slack.deliverTo(`${service.url}/slack/events`);
    hear(one);
    return { slack, ada, general, redis, one, other, hear };
  }

  async function readHistory(slack: Slack, channel: Channel): Promise<HistoryEntry[]> {
    const stores = createStores(
      { redisUrl: shared().redis.url, database: new DatabaseSync(":memory:"), log: silent },
      NO_RIGHT,
    );
    try {
      const history = createHistory({ ...stores, ttlMs: 86_400_000, log: silent, now: Date.now });
      const prefix = `slack:${slack.workspace.id}:${channel.id}:`;
      const [conversationId] = await Array.fromAsync(history.conversations(prefix));
      return (await history.read(conversationId ?? "", { maxEntries: 100 })).entries;
    } finally {
      await stores.close();
    }
  }

  const NUMBERS = Array.from({ length: 150 }, (_, index) => String(index + 1)).join(" ");
  /** True while this process is answering. */
  const asks = async (service: RunningService) => (await readMetric(service, "queue_active")) > 0;

  type Scene = Awaited<ReturnType<typeof start>>;

  async function begin({ slack, ada, general }: Pick<Scene, "slack" | "ada" | "general">) {
    const asked = ada.mention(general, `At 30 tokens per second, say: ${NUMBERS}`);
    const countStates = () => slack.answers(general, asked).reduce((sum, answer) => sum + answer.states.length, 0);
    await slack.until(() => countStates() >= 3, "the beginning of the answer");
    return asked;
  }

  async function beginAtOne(scene: Scene) {
    const asked = await begin(scene);
    const { one, other } = scene;
    const [working, left] = (await asks(one)) ? [one, other] : [other, one];
    return { asked, working, left };
  }

  test("twelve messages at once in one conversation all reach its history, and are answered in order", async () => {
    const { slack, ada, general, one, other, hear } = await start();
    const root = ada.mention(general, "Say: hello");
    await answersIn(slack, general, root);
    const texts = Array.from({ length: 12 }, (_, index) => `Say: word${index + 1}`);
    for (const [index, text] of texts.entries()) {
      hear(index % 2 === 0 ? one : other);
      ada.say(general, text, { thread: root });
    }
    await slack.acknowledged();
    // The processes accept at their own speeds, so the last message sent need not be the last one answered.
    async function readSaid(): Promise<string[]> {
      const entries = await readHistory(slack, general);
      return entries
        .filter(({ author }) => author !== undefined)
        .flatMap(({ messages: [first] }) => (typeof first?.content === "string" ? [first.content] : []));
    }
    await eventually(async () => (await readSaid()).length).toBeGreaterThanOrEqual(13);
    await answersIn(slack, general, root, 2);

    const said = await readSaid();
    expect(new Set(said)).toEqual(new Set(["Say: hello", ...texts]));
    expect(said).toHaveLength(13);
    const shown = [
      ...slack
        .texts(general, root)
        .join(" ")
        .matchAll(/word(\d+)/g),
    ].map(([, number]) => Number(number));
    const order = said.flatMap((text) => /word(\d+)/.exec(text)?.[1] ?? []).map(Number);
    expect(shown).toEqual(order.filter((number) => shown.includes(number)));
  });

  test("an answer continues while Redis is silent, and is in the history when Redis is back", async () => {
    const scene = await start();
    const { slack, ada, general, redis } = scene;
    const asked = await begin(scene);
    redis.freeze();
    const until = performance.now() + 10_000;
    try {
      expect(await answersIn(slack, general, asked)).toEqual([NUMBERS]);
      // Three times as long as a lease.
      await eventually(() => performance.now() > until || "silent").toBe(true);
    } finally {
      redis.thaw();
    }
    await eventually(async () => (await readHistory(slack, general)).map(({ messages: [said] }) => said)).toMatchObject(
      [{ role: "user" }, { role: "assistant", content: NUMBERS }],
    );
    ada.say(general, "Say: again", { thread: asked });
    expect(await answersIn(slack, general, asked, 2)).toEqual([NUMBERS, "again"]);
  });

  test("a process that was paused writes nothing to an answer that another process took over", async () => {
    const scene = await start();
    const { slack, general, hear } = scene;
    const { asked, working, left } = await beginAtOne(scene);
    hear(left);
    // The process cannot cancel a call in flight, and starts no other call during it.
    const stopped = Promise.withResolvers<void>();
    working.atNext(() => stopped.resolve(void process.kill(working.pid, "SIGSTOP")));
    await stopped.promise;
    const before = { calls: [...working.calls], lines: working.lines.length, callsOfLeft: left.calls.length };
    // Waits until the second process has taken over. Earlier, it would notice that the first process woke up.
    await eventually(() => left.calls.length > before.callsOfLeft).toBe(true);
    // Either the lost right or the store can refuse the write first.
    const wasTold = () =>
      working.lines.slice(before.lines).some((line) => /another process has taken over a lane|FencedError/.test(line));
    process.kill(working.pid, "SIGCONT");
    await eventually(wasTold).toBe(true);
    expect(await answersIn(slack, general, asked)).toEqual([NUMBERS]);
    expect(slack.answers(general, asked)).toHaveLength(1);
    expect(working.calls).toEqual(before.calls);
    await eventually(async () => (await readHistory(slack, general)).map(({ messages: [said] }) => said)).toMatchObject(
      [{ role: "user" }, { role: "assistant", content: NUMBERS }],
    );
  });

  test("the other process finishes the answer of a process that exits without a grace period", async () => {
    const scene = await start();
    const { slack, general, hear } = scene;
    const { asked, working, left } = await beginAtOne(scene);
    hear(left);
    await working.end("SIGTERM");
    expect(await answersIn(slack, general, asked)).toEqual([NUMBERS]);
    expect(slack.answers(general, asked)).toHaveLength(1);
    const [answer] = slack.answers(general, asked);
    expect(answer?.states.some(({ shown }) => shown.includes("Press Retry"))).toBe(false);
  });

  test("/forget that another process receives ends the answer to the erased person", async () => {
    const scene = await start();
    const { slack, general, hear } = scene;
    const ferdinand = slack.user({ name: "Ferdinand" });
    general.members.add(ferdinand.id);
    const { asked, left, working } = await beginAtOne({ ...scene, ada: ferdinand });
    hear(left);
    await ferdinand.command("/forget", "me for good", general);
    const said = await slack.until(() => slack.ephemerals(general, ferdinand.id).at(-1), "the word that it is done");
    expect(JSON.stringify(said.content)).toMatch(/I no longer know anything about you/);
    await slack.until(() => slack.answers(general, asked).length === 0, "the answer to be gone");
    await eventually(() => asks(working)).toBe(false);
    expect(slack.answers(general, asked)).toEqual([]);
  });
});
