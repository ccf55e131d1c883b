import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { NO_RIGHT } from "../../../src/port/right.ts";
import { openDatabase } from "../../../src/store/database.ts";
import { createStores, type Stores } from "../../../src/store/keyv.ts";
import { connectToRedis, type RedisConnection } from "../../../src/store/redis-connection.ts";
import type { Arrivals } from "../../pacing/scenarios.ts";
import { openSlack } from "../../slack-sim/control.ts";
import type { Channel, Workspace } from "../../slack-sim/world.ts";
import { silent } from "../../support/log.ts";
import { lookFor } from "../../support/look-for.ts";
import { startRedis } from "../../support/redis.ts";
import { type RunningService, startService } from "../../support/service.ts";
import { installIntoSlack, toInstallableEnv } from "../../support/slack-install.ts";
import { type PacedUpstream, startPacedUpstream, wordsOf } from "./paced-upstream.ts";

const WORKSPACES = 20;
const PLACES = 512;
const WAIT_MS = 60_000;
const TICKS_PER_SECOND = 100;

/**
 * A simulated Slack with several workspaces. One process receives its events and several others answer, all on one
 * Redis.
 */
export interface Cluster {
  workers: readonly RunningService[];
  ingress: RunningService;
  connection: RedisConnection;
  upstream: PacedUpstream;
  stores: Stores;
  /** Asks as a new person, in a new channel of the next workspace. */
  ask(question: string): Asked;
  /** Polls. Resolves to the approximate time when the complete answer was visible, in Unix milliseconds. */
  untilAnswered(asked: Asked): Promise<number>;
}

export interface Asked {
  question: string;
  author: { platform: string; id: string; name: string };
  workspace: Workspace;
  channel: Channel;
  /** Timestamp of the thread's root message. */
  ts: string;
  /** Number of answers in the thread before this question. */
  earlier: number;
  /** Asks in the same thread. */
  follow(question: string): Asked;
}

export async function openCluster(
  resources: AsyncDisposableStack,
  workers: number,
  plan: (question: string) => Arrivals,
): Promise<Cluster> {
  const slack = await openSlack({ streaming: "on" });
  resources.defer(slack.close);
  const redis = await startRedis();
  resources.defer(redis.stop);
  const connection = connectToRedis(redis.url, silent);
  resources.defer(connection.close);
  const stores = createStores({ redisUrl: redis.url, database: openDatabase(":memory:"), log: silent }, NO_RIGHT);
  resources.defer(stores.close);
  const upstream = await startPacedUpstream(plan);
  resources.defer(upstream.close);

  async function open(role: string): Promise<RunningService> {
    const dataDir = await mkdtemp(join(tmpdir(), "palaver-bench-"));
    resources.defer(() => rm(dataDir, { recursive: true, force: true }));
    const service = await startService(dataDir, {
      ...toInstallableEnv(slack),
      SLACK_API_URL: slack.apiUrl,
      GATEWAY_BASE_URL: upstream.url,
      GATEWAY_API_KEY: "none",
      CHAT_MODEL: "paced",
      LOCAL_CHAT: "off",
      REDIS_URL: redis.url,
      ROLE: role,
      MAX_CONCURRENT_TURNS: String(PLACES),
    });
    resources.defer(async () => void (await service.end("SIGKILL")));
    return service;
  }
  const ingress = await open("ingress");
  const others = await Promise.all(Array.from({ length: workers }, () => open("worker")));
  const workspaces = [slack.workspace];
  while (workspaces.length < WORKSPACES) workspaces.push(slack.addWorkspace(`W${workspaces.length}`));
  for (const workspace of workspaces) await installIntoSlack(slack, ingress.url, workspace);

  let asked = 0;
  function ask(question: string): Asked {
    const workspace = workspaces[asked++ % workspaces.length] ?? slack.workspace;
    // Each question has its own asker, because one person gets only half of the slots.
    const person = slack.user({ name: question, workspace });
    const channel = slack.channel({ name: question.replaceAll(" ", "-"), members: [person], workspace });
    const root = person.mention(channel, question);
    const author = { platform: "slack", id: person.id, name: question };
    const place = { author, workspace, channel, ts: root.ts };
    let earlier = 0;
    function follow(text: string): Asked {
      person.say(channel, text, { thread: root });
      earlier += 1;
      return { ...place, question: text, earlier, follow };
    }
    return { ...place, question, earlier, follow };
  }

  async function untilAnswered({ question, channel, ts, earlier }: Asked): Promise<number> {
    const last = wordsOf(plan(question)).at(-1)?.trim() ?? "";
    const isWhole = () => {
      const answer = slack.answers(channel, ts)[earlier];
      const isOver = answer !== undefined && answer.stream?.state !== "in_progress";
      return isOver && slack.texts(channel, ts)[earlier]?.includes(last) === true;
    };
    if ((await lookFor(isWhole, WAIT_MS)) === undefined) throw new Error(`No answer to: ${question}`);
    return Date.now();
  }

  return { workers: others, ingress, connection, stores, upstream, ask, untilAnswered };
}

/** Returns a process's processor time, user and system, in milliseconds. */
export function readCpuMs({ pid }: RunningService): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return ((Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND) * 1_000;
}

export function readRssKib({ pid }: RunningService): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}

export function describeLoad(): string {
  return `load ${loadavg()[0]?.toFixed(1)}`;
}
