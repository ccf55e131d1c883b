import { afterAll, beforeAll, onTestFinished } from "vitest";
import { silent } from "../../lab/support/log.ts";
import { startRedis } from "../../lab/support/redis.ts";
import { makeDataDir, type RunningService, startService } from "../../lab/support/service.ts";
import { startSandbox } from "../../src/sandbox/server.ts";
import type { OnEnd } from "../support/listen.ts";

export type CrewRole = "ingress" | "worker";

/** Processes that share the work on one Redis and use one gateway. They end with the test, or when `onEnd` runs. */
export interface Crew {
  readonly ingress: RunningService;
  workers: readonly [RunningService, RunningService];
  open(role: CrewRole): Promise<RunningService>;
  /** The worker that is answering at the moment, and the other one. Undefined while none is answering. */
  atWork(): Promise<{ busy: RunningService; idle: RunningService } | undefined>;
}

/**
 * Starts one process that receives events from the platforms in `env`, and two that answer. The gateway fetches files
 * from the first one.
 */
export async function startCrew(env: Record<string, string>, onEnd: OnEnd = onTestFinished): Promise<Crew> {
  const redis = await startRedis();
  onEnd(redis.stop);
  // Discord's files are open to anyone with their link.
  const trustedFileOrigins = env["DISCORD_API_URL"] === undefined ? [] : [new URL(env["DISCORD_API_URL"]).origin];
  const gateway = await startSandbox({ host: "127.0.0.1", port: 0, log: silent, trustedFileOrigins });
  onEnd(gateway.close);
  const shared: Record<string, string> = {
    ...env,
    REDIS_URL: redis.url,
    GATEWAY_BASE_URL: gateway.url,
    GATEWAY_API_KEY: "sk-sandbox-all",
    CHAT_MODEL: "sandbox-chat",
    IMAGE_MODEL: "sandbox-image",
  };

  async function launch(role: CrewRole): Promise<RunningService> {
    const { path, remove } = await makeDataDir();
    onEnd(remove);
    const service = await startService(path, { ...shared, ROLE: role });
    onEnd(async () => void (await service.end("SIGKILL")));
    return service;
  }

  let ingress = await launch("ingress");
  shared["PUBLIC_URL"] = ingress.url;
  trustedFileOrigins.push(ingress.url);
  const workers = await Promise.all([launch("worker"), launch("worker")]);
  const [one, other] = workers;
  return {
    get ingress() {
      return ingress;
    },
    workers,
    async open(role) {
      const service = await launch(role);
      if (role === "ingress") ingress = service;
      return service;
    },
    async atWork() {
      if ((await readMetric(one, "queue_active")) > 0) return { busy: one, idle: other };
      return (await readMetric(other, "queue_active")) > 0 ? { busy: other, idle: one } : undefined;
    },
  };
}

/**
 * A scene that several tests in a `describe` share, because processes start slowly. Each test leaves it ready for the
 * next one.
 */
export function shareScene<T>(start: (onEnd: OnEnd) => Promise<T>): () => T {
  const ends: Array<() => Promise<void> | void> = [];
  let scene: T | undefined;
  beforeAll(async () => void (scene = await start((end) => void ends.push(end))));
  afterAll(async () => {
    for (const end of ends.toReversed()) await end();
  });
  return () => {
    if (scene === undefined) throw new Error("The scene is there while tests run.");
    return scene;
  };
}

/** The sum of a metric over all its series. */
export async function readMetric({ url }: RunningService, name: string): Promise<number> {
  const lines = (await (await fetch(`${url}/metrics`)).text()).split("\n");
  const values = lines.filter((line) => new RegExp(`^palaver_${name}[ {]`).test(line));
  return values.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}
