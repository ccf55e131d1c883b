import { createServer, request } from "node:http";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { createHistory } from "../../src/history/history.ts";
import type { HistoryEntry } from "../../src/history/record.ts";
import { createStores } from "../../src/store/keyv.ts";
import { openSlack, type Slack } from "../simulators/slack/control.ts";
import type { Channel } from "../simulators/slack/world.ts";
import { eventually } from "../support/eventually.ts";
import { listen } from "../support/listen.ts";
import { silent } from "../support/log.ts";
import { isRedisMissing, startRedis } from "../support/redis.ts";
import { makeDataDir, type RunningService, startService } from "../support/service.ts";
import { type OnEnd, readMetric, shareScene } from "./crew.ts";
import { answersIn } from "./slack-service.ts";

interface Watch {
  /** What it has asked of Slack to be written. */
  calls: string[];
  /** Acts once, when the next of them has come and before Slack is asked. */
  atNext(act: () => void): void;
}

type Watched = RunningService & Watch;

/** Passes on what is asked of Slack, and notes the methods that write. */
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

/** A Slack, a Redis, and what starts processes of the service on them. */
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
      // Seven of them are for the end itself: no answer has any.
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

  /** So many of them at least, which have nothing left to do: what tests before have ended is started anew. */
  async function untilRunning(count: number): Promise<Watched[]> {
    await Promise.all(Array.from({ length: count - running.size }, open));
    const isAtRest = async (service: Watched) =>
      (await fetch(`${service.url}/readyz`)).ok && (await readMetric(service, "queue_active")) === 0;
    for (const service of running) await eventually(() => isAtRest(service)).toBe(true);
    return [...running];
  }

  return { redis, slack, ada, open, untilRunning };
}

describe.skipIf(isRedisMissing)("two processes on one Redis (needs redis-server)", () => {
  const shared = shareScene(startWorld);
  let rooms = 0;

  /** Two processes where nothing else is said, and a channel of the test's own. */
  async function start(count: 1 | 2 = 2) {
    const { slack, ada, redis, open, untilRunning } = shared();
    const [one, other = one] = await untilRunning(count);
    if (one === undefined || other === undefined) throw new Error("There is no process.");
    rooms += 1;
    const general = slack.channel({ name: `room-${rooms}`, members: [ada] });
    /** What happens from now on is heard by this one. */
    const hear = (service: RunningService) => slack.deliverTo(`${service.url}/slack/events`);
    hear(one);
    return { slack, ada, general, redis, one, other, hear, open };
  }

  /** The one conversation in a channel. */
  async function readHistory(slack: Slack, channel: Channel): Promise<HistoryEntry[]> {
    const stores = createStores({ redisUrl: shared().redis.url, database: new DatabaseSync(":memory:"), log: silent });
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
  /** Whether it answers something at the moment. */
  const asks = async (service: RunningService) => {
    const text = await (await fetch(`${service.url}/metrics`)).text();
    return Number(/^palaver_queue_\w*active\w* (\d+)/m.exec(text)?.[1] ?? 0) > 0;
  };

  type Scene = Pick<Awaited<ReturnType<typeof start>>, "slack" | "ada" | "general">;

  /** A long answer that has begun to grow. */
  async function begin({ slack, ada, general }: Scene) {
    const asked = ada.mention(general, `At 30 tokens per second, say: ${NUMBERS}`);
    const states = () => slack.answers(general, asked).reduce((sum, answer) => sum + answer.states.length, 0);
    await slack.until(() => states() >= 3, "the beginning of the answer");
    return { asked, states };
  }

  /** Also which of the two writes it, and which is left when that one is gone. */
  async function beginAtOne(scene: Awaited<ReturnType<typeof start>>) {
    const begun = await begin(scene);
    const { one, other } = scene;
    const [working, left] = (await asks(one)) ? [one, other] : [other, one];
    return { ...begun, working, left };
  }

  test("twelve messages at once in one conversation are all in its history, and answered in order", async () => {
    const { slack, ada, general, one, other, hear } = await start();
    const root = ada.mention(general, "Say: hello");
    await answersIn(slack, general, root);
    const texts = Array.from({ length: 12 }, (_, index) => `Say: word${index + 1}`);
    for (const [index, text] of texts.entries()) {
      hear(index % 2 === 0 ? one : other);
      ada.say(general, text, { thread: root });
    }
    await slack.acknowledged();
    const isAnswered = () => slack.texts(general, root).join(" ").includes("word12");
    await slack.until(isAnswered, "the answer to the last one");
    await answersIn(slack, general, root, 2);

    const entries = await readHistory(slack, general);
    const said = entries
      .filter(({ author }) => author !== undefined)
      .flatMap(({ messages: [first] }) => (typeof first?.content === "string" ? [first.content] : []));
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

  test("an answer that Redis falls silent under goes on to its end, and is in the history once it is back", async () => {
    const scene = await start();
    const { slack, ada, general, redis } = scene;
    const { asked } = await begin(scene);
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

  test("a process that stood still for longer than its lease writes nothing more to an answer that was taken over", async () => {
    const scene = await start();
    const { slack, general, hear } = scene;
    const { asked, working, left } = await beginAtOne(scene);
    hear(left);
    // Nobody can take back a call that has begun, and while one is under way it begins no other.
    const stopped = Promise.withResolvers<void>();
    working.atNext(() => stopped.resolve(void process.kill(working.pid, "SIGSTOP")));
    await stopped.promise;
    const before = { calls: [...working.calls], lines: working.lines.length, callsOfLeft: left.calls.length };
    // One that is about to take it would still find that the first has woken.
    await eventually(() => left.calls.length > before.callsOfLeft).toBe(true);
    // By its lease or by what it wanted to store, whichever it comes to first.
    const wasTold = () =>
      working.lines.slice(before.lines).some((line) => /another process has taken a lane over|FencedError/.test(line));
    process.kill(working.pid, "SIGCONT");
    await eventually(wasTold).toBe(true);
    expect(await answersIn(slack, general, asked)).toEqual([NUMBERS]);
    expect(slack.answers(general, asked)).toHaveLength(1);
    expect(working.calls).toEqual(before.calls);
    await eventually(async () => (await readHistory(slack, general)).map(({ messages: [said] }) => said)).toMatchObject(
      [{ role: "user" }, { role: "assistant", content: NUMBERS }],
    );
  });

  test("killed in the middle of an answer, one is replaced by the other, in the same message", async () => {
    const scene = await start();
    const { slack, general } = scene;
    const { asked, states, working, left } = await beginAtOne(scene);
    slack.deliverTo(`${left.url}/slack/events`);
    await working.end("SIGKILL");
    const before = states();
    await eventually(() => asks(left)).toBe(true);
    await slack.until(() => states() > before, "the answer to grow again");
    expect(await answersIn(slack, general, asked)).toEqual([NUMBERS]);
    expect(slack.answers(general, asked)).toHaveLength(1);
  });

  test("told to end in the middle of an answer that gets no grace, one is replaced by the other, in the same message", async () => {
    const scene = await start();
    const { slack, general } = scene;
    const { asked, working, left } = await beginAtOne(scene);
    slack.deliverTo(`${left.url}/slack/events`);
    await working.end("SIGTERM");
    expect(await answersIn(slack, general, asked)).toEqual([NUMBERS]);
    expect(slack.answers(general, asked)).toHaveLength(1);
    const [answer] = slack.answers(general, asked);
    expect(answer?.states.some(({ shown }) => shown.includes("Press Retry"))).toBe(false);
  });

  test("the only one that is told to end leaves its answer to the next one that starts", async () => {
    const scene = await start(1);
    const { slack, general, one, hear, open } = scene;
    const { asked } = await begin(scene);
    await one.end("SIGTERM");
    hear(await open());
    expect(await answersIn(slack, general, asked)).toEqual([NUMBERS]);
    expect(slack.answers(general, asked)).toHaveLength(1);
  });

  test("a stop that is pressed at the one ends the answer of the other", async () => {
    const { slack, ada, general, one, other, hear } = await start();
    // Where an answer is posted and edited, its button stands under it.
    slack.setStreaming("unknown_method");
    const asked = ada.mention(general, `At 20 tokens per second, say: ${NUMBERS}`);
    await slack.until(() => slack.answers(general, asked).some(({ states }) => states.length >= 3), "an answer");
    hear((await asks(one)) ? other : one);
    const [answer] = slack.answers(general, asked);
    if (answer === undefined) throw new Error("There is no answer.");
    await ada.press(answer, "stop");
    const [text] = await answersIn(slack, general, asked);
    expect(text).not.toContain("150");
    expect(text).toMatch(/stopped/i);
  });
});
