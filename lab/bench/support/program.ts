import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** Maximum time until a program is ready, and until it has exited. */
const WAIT_MS = 20_000;
const POLL_MS = 2;

/** The started programs. Ctrl-C in a terminal reaches only this process, so this process stops them. */
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

/** Times in milliseconds from the start of the process. */
export interface StartTimes {
  lineMs: number;
  /** When `/readyz` first responds with 200. */
  answerMs: number;
}

/**
 * Starts a server, waits until it responds, and stops it. The server must print a JSON line with a ready message and
 * its address as `url`. Rejects with the server's output if that fails.
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

/** Resolves to the milliseconds until the program exits. */
export async function timeRun(program: Program): Promise<number> {
  const startMs = performance.now();
  const child = start(program);
  child.stdout?.resume();
  child.stderr?.resume();
  await once(child, "exit", { signal: AbortSignal.timeout(WAIT_MS) });
  return performance.now() - startMs;
}

/** Starts a process group, so that child processes can be stopped too. */
function start({ command, args, env, cwd }: Program): ChildProcess {
  const child = spawn(command, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  running.add(child);
  child.once("close", () => running.delete(child));
  return child;
}

async function readAddress(child: ChildProcess, signal: AbortSignal): Promise<string> {
  const lines: string[] = [];
  const failed = Promise.race([once(child, "close", { signal }), once(child, "error", { signal })]);
  const reported = Promise.withResolvers<string>();
  for (const input of [child.stdout, child.stderr]) {
    if (input === null) continue;
    createInterface({ input }).on("line", (line) => {
      lines.push(line);
      const url = /"url":"(http[^"]+)"/.exec(line)?.[1];
      if (url !== undefined && line.includes("is ready")) reported.resolve(url);
    });
  }
  const url = await Promise.race([reported.promise, failed.catch(() => {})]);
  if (typeof url === "string") return url;
  throw new Error(`${child.spawnargs.join(" ")} did not print a ready line. It printed:\n${lines.join("\n")}`);
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
  } catch {}
}
