import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";

/** A silent worker is a broken one. */
const ANSWER_MS = 30_000;

/** True where a process can be kept on one core, so that what is measured does not share it with what feeds it. */
export const canPin: boolean =
  availableParallelism() > 1 && spawnSync("taskset", ["-c", "0", "true"], { stdio: "ignore" }).status === 0;

export interface Worker {
  /** The next message of the worker. Rejects when it ends without one, or is silent for too long. */
  receive<T>(): Promise<T>;
  send(message: string): void;
  end(): Promise<void>;
}

/** The program at `url` in a process of its own on core `core`, with a channel for messages. What it prints goes to `output`. */
export function startWorker(
  url: string,
  args: readonly string[],
  core: number,
  output: "inherit" | "ignore" = "inherit",
): Worker {
  const path = fileURLToPath(url);
  const node = [process.execPath, "--disable-warning=ExperimentalWarning", path];
  const [command = "", ...rest] = canPin ? ["taskset", "-c", String(core), ...node, ...args] : [...node, ...args];
  const child = spawn(command, rest, { stdio: ["ignore", output, "inherit", "ipc"] });
  return {
    receive: <T>() => receive<T>(child, basename(path)),
    send: (message) => void child.send(message),
    async end() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exit = once(child, "exit");
      child.kill("SIGKILL");
      await exit;
    },
  };
}

async function receive<T>(child: ChildProcess, name: string): Promise<T> {
  const signal = AbortSignal.timeout(ANSWER_MS);
  const failed = once(child, "exit", { signal }).then(
    () => Promise.reject(new Error(`The worker ${name} ended without a result.`)),
    () => Promise.reject(new Error(`The worker ${name} gave no result within ${ANSWER_MS / 1_000} s.`)),
  );
  const [message] = (await Promise.race([once(child, "message", { signal }), failed])) as [T];
  return message;
}
