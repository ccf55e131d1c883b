import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** Without the binary these tests are skipped by name; where everything must run they fail instead. */
export const isRedisMissing =
  process.env["CI"] !== "true" && spawnSync("redis-server", ["--version"]).error !== undefined;

export interface RedisServer {
  url: string;
  /** Stops answering, with every connection left open. */
  freeze(): void;
  thaw(): void;
  /** Ends it as a crash would. What it held is lost, unless it is kept. */
  kill(): Promise<void>;
  /** Starts it again at the same address, empty unless that is kept. */
  restart(): Promise<void>;
  /** Ends it for good and removes its files. */
  stop(): Promise<void>;
}

export interface RedisOptions {
  /** Keeps on disk what it has said to have taken. */
  isKept?: boolean;
  password?: string;
  /** A node of a cluster that has no other one. */
  isCluster?: boolean;
  /** How many it has, each by its number; without this as many as it has anyway. */
  databases?: number;
}

/** A Redis of one's own on a free loopback port, without persistence unless it is asked for. */
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

/** Somebody else may take the port between looking for it and listening on it. */
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
  // The nodes of a cluster talk on a port of their own, which is 10,000 higher where nothing else is said.
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
    throw new Error(`redis-server ended at once:\n${lines.join("\n")}`);
  })();
  await Promise.race([ready, failed]);
  // Nobody reads its log any more, and a full pipe would stop it.
  child.stdout.resume();
  return child;
}

/**
 * One below those that systems give to outgoing connections (from 32768 on, Linux), so that nobody gets it while a Redis
 * that was killed is away from it.
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
