import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** True if tests that need Redis must be skipped, because the binary is missing. In CI they fail instead. */
export const isRedisMissing =
  process.env["CI"] !== "true" && spawnSync("redis-server", ["--version"]).error !== undefined;

export interface RedisServer {
  url: string;
  /** Pauses Redis; its connections stay open. */
  freeze(): void;
  thaw(): void;
  /** Kills Redis like a crash. Its data is lost without `isKept`. */
  kill(): Promise<void>;
  /** Restarts Redis at the same address. Without `isKept`, Redis is then empty. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export interface RedisOptions {
  /** If true, Redis saves acknowledged writes to disk. */
  isKept?: boolean;
  password?: string;
  /** If true, Redis is the only node of a cluster. */
  isCluster?: boolean;
  /** Number of databases; default: Redis's own default. */
  databases?: number;
}

/** Starts a Redis on a free loopback port. It writes nothing to disk without `isKept`. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const folder = await mkdtemp(join(tmpdir(), "palaver-redis-"));
  const { child, port } = await startOnFreePort(folder, options);
  let starting = Promise.resolve(child);

  async function kill(): Promise<void> {
    const server = await starting;
    if (server.exitCode !== null || server.signalCode !== null) return;
    const exit = once(server, "exit");
    server.kill("SIGKILL");
    await exit;
  }

  const signal = (name: NodeJS.Signals) => void starting.then((server) => server.kill(name));

  return {
    url: `redis://${options.password === undefined ? "" : `:${options.password}@`}127.0.0.1:${port}`,
    freeze: () => signal("SIGSTOP"),
    thaw: () => signal("SIGCONT"),
    kill,
    async restart() {
      await kill();
      starting = launch(folder, port, options);
      await starting;
    },
    async stop() {
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Retries, because another program can take the free port first. */
async function startOnFreePort(folder: string, options: RedisOptions): Promise<{ child: ChildProcess; port: number }> {
  for (let attempt = 1; ; attempt++) {
    const port = await findFreePort();
    try {
      return { child: await launch(folder, port, options), port };
    } catch (error) {
      if (attempt === 5) throw error;
    }
  }
}

async function launch(folder: string, port: number, options: RedisOptions): Promise<ChildProcess> {
  const { isKept = false, isCluster = false, password, databases } = options;
  const place = ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder, "--save", ""];
  const kept = isKept ? ["--appendonly", "yes", "--appendfsync", "always"] : ["--appendonly", "no"];
  const many = databases === undefined ? [] : ["--databases", String(databases)];
  const secret = password === undefined ? [] : ["--requirepass", password];
  // Choose the second port of a cluster node too, because its default is 10,000 higher.
  const cluster = isCluster ? ["--cluster-enabled", "yes", "--cluster-port", String(await findFreePort())] : [];
  const child = spawn("redis-server", [...place, ...kept, ...many, ...secret, ...cluster], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines: string[] = [];
  const failed = once(child, "error").then(([error]: unknown[]) => {
    throw new Error("redis-server could not be started. Install it, or run the tests without CI=true.", {
      cause: error,
    });
  });
  const ready = (async () => {
    for await (const line of createInterface({ input: child.stdout })) {
      lines.push(line);
      if (line.includes("Ready to accept connections")) return;
    }
    throw new Error(`redis-server exited at once:\n${lines.join("\n")}`);
  })();
  await Promise.race([ready, failed]);
  // Reads the output, because a full pipe would block Redis.
  child.stdout.resume();
  return child;
}

/**
 * Finds a free port below 32768, where Linux's range for outgoing connections starts. Other programs then do not take
 * the port while a killed Redis is down.
 */
async function findFreePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_768);
    const probe = createServer().listen(port, "127.0.0.1");
    const isFree = await once(probe, "listening").then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    probe.close();
    await once(probe, "close");
    return port;
  }
}
