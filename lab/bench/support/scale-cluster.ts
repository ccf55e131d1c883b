import { readFileSync } from "node:fs";
import { loadavg } from "node:os";
import { connectToRedis, type RedisConnection } from "../../../src/store/redis-connection.ts";
import type { Arrivals } from "../../pacing/scenarios.ts";
import { openSlack } from "../../slack-sim/control.ts";
import type { Channel } from "../../slack-sim/world.ts";
import { silent } from "../../support/log.ts";
import { lookFor } from "../../support/look-for.ts";
import { startRedis } from "../../support/redis.ts";
import { makeDataDir, type RunningService, startService } from "../../support/service.ts";
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
  /** Asks as a new person, in a new channel of the next workspace. */
  ask(question: string): Asked;
  /** Polls. Resolves to the approximate time when the complete answer was visible, in Unix milliseconds. */
  untilAnswered(asked: Asked): Promise<number>;
}

export interface Asked {
  question: string;
  channel: Channel;
  /** Timestamp of the thread's root message. */
  ts: string;
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
  const upstream = await startPacedUpstream(plan);
  resources.defer(upstream.close);

  async function open(role: string): Promise<RunningService> {
    const { path: dataDir, remove } = await makeDataDir();
    resources.defer(remove);
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
    return { question, channel, ts: person.mention(channel, question).ts };
  }

  async function untilAnswered({ question, channel, ts }: Asked): Promise<number> {
    const last = wordsOf(plan(question)).at(-1)?.trim() ?? "";
    const isWhole = () => {
      const [answer] = slack.answers(channel, ts);
      const isOver = answer !== undefined && answer.stream?.state !== "in_progress";
      return isOver && slack.texts(channel, ts)[0]?.includes(last) === true;
    };
    if ((await lookFor(isWhole, WAIT_MS)) === undefined) throw new Error(`No answer to: ${question}`);
    return Date.now();
  }

  return { workers: others, ingress, connection, upstream, ask, untilAnswered };
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
