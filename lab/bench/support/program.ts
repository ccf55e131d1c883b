import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** Longest wait for a program to be ready, and to end. */
const WAIT_MS = 20_000;
const POLL_MS = 2;

/** The terminal's Ctrl-C reaches only this process: it ends what it has started. */
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) kill(child, "SIGKILL");
});

export interface Program {
  command: string;
  args: readonly string[];
  env: Record<string, string>;
  cwd: string;
}

/** Milliseconds from the start of the process. */
export interface StartTimes {
  /** To the line that says ready, with the address. */
  lineMs: number;
  /** To the first 200 of `/readyz` at that address. */
  answerMs: number;
}

/**
 * Starts a server, waits until it answers and ends it again. It is one that prints a JSON line with its address as
 * `url` and says in it that it is ready. Rejects with what it printed when it does not come so far.
 */
export async function timeStart(program: Program): Promise<StartTimes> {
  const startMs = performance.now();
  const child = start(program);
  try {
    const signal = AbortSignal.timeout(WAIT_MS);
    const url = await readAddress(child, signal);
    const lineMs = performance.now() - startMs;
    while (!(await answers(`${url}/readyz`, signal))) await once(AbortSignal.timeout(POLL_MS), "abort", { signal });
    return { lineMs, answerMs: performance.now() - startMs };
  } finally {
    await end(child);
  }
}

/** Milliseconds until a program has ended by itself. */
export async function timeRun(program: Program): Promise<number> {
  const startMs = performance.now();
  const child = start(program);
  child.stdout?.resume();
  child.stderr?.resume();
  await once(child, "exit", { signal: AbortSignal.timeout(WAIT_MS) });
  return performance.now() - startMs;
}

/** In a process group of its own, so that what it starts can be ended with it. */
function start({ command, args, env, cwd }: Program): ChildProcess {
  const child = spawn(command, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  running.add(child);
  child.once("close", () => running.delete(child));
  return child;
}

async function readAddress(child: ChildProcess, signal: AbortSignal): Promise<string> {
  const lines: string[] = [];
  const failed = Promise.race([once(child, "close", { signal }), once(child, "error", { signal })]);
  const told = Promise.withResolvers<string>();
  for (const input of [child.stdout, child.stderr]) {
    if (input === null) continue;
    createInterface({ input }).on("line", (line) => {
      lines.push(line);
      const url = /"url":"(http[^"]+)"/.exec(line)?.[1];
      if (url !== undefined && line.includes("is ready")) told.resolve(url);
    });
  }
  const url = await Promise.race([told.promise, failed.catch(() => {})]);
  if (typeof url === "string") return url;
  throw new Error(`${child.spawnargs.join(" ")} did not say that it is ready. It printed:\n${lines.join("\n")}`);
}

async function answers(url: string, signal: AbortSignal): Promise<boolean> {
  const { ok, body } = await fetch(url, { signal, headers: { connection: "close" } });
  await body?.cancel();
  return ok;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, "exit", { signal: AbortSignal.timeout(WAIT_MS) });
  kill(child, "SIGTERM");
  await exit.catch(() => kill(child, "SIGKILL"));
}

function kill(child: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, signal);
  } catch {
    // The group has ended already.
  }
}
