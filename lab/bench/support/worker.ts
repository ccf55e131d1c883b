import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";

/** A worker that is silent for longer counts as broken. */
const ANSWER_MS = 30_000;

/** True if processes can be pinned to cores, so that the measured process and its load generator use different ones. */
export const canPin: boolean =
  availableParallelism() > 1 && spawnSync("taskset", ["-c", "0", "true"], { stdio: "ignore" }).status === 0;

export interface Worker {
  /** Resolves to the worker's next message. Rejects if the worker exits first or is silent for too long. */
  receive<T>(): Promise<T>;
  send(message: string): void;
  end(): Promise<void>;
}

/**
 * Starts the program at `url` as a separate process on core `core`, with a channel for messages. Its output goes to
 * `output`.
 */
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
    () => Promise.reject(new Error(`The worker ${name} exited without a result.`)),
    () => Promise.reject(new Error(`The worker ${name} gave no result within ${ANSWER_MS / 1_000} s.`)),
  );
  const [message] = (await Promise.race([once(child, "message", { signal }), failed])) as [T];
  return message;
}
