import { type ChildProcess, fork } from "node:child_process";
import { Socket } from "node:net";
import { untilAborted } from "./deadlines.ts";
import { createFairTurns } from "./fair-turns.ts";
import { BYTES_FD, type Packed, pack, unpack } from "./packed-bytes.ts";

/** The longest wait of a job for earlier jobs. */
const WAIT_MS = 60_000;
/** An idle process ends after this time, to free its memory. */
const IDLE_MS = 30_000;
/**
 * The child does not inherit the environment. glibc keeps freed memory in every arena: after 25 large AVIFs, the
 * default number of arenas needs 328 MiB, and a single arena 51 MiB.
 */
const ENVIRONMENT = { MALLOC_ARENA_MAX: "1", UV_THREADPOOL_SIZE: "1" };

export interface JobProcessOptions {
  /** The path of a program that calls `serveJobs`. */
  program: string;
  nodeOptions?: readonly string[];
  /** The longest time for one job. */
  jobMs: number;
  waitMs?: number;
  idleMs?: number;
}

/** `too-slow`: the job timed out. `busy`: it never started. `failed`: the process died, usually out of memory. */
export interface Undone {
  problem: { kind: "too-slow" | "busy" | "failed" };
  cause?: unknown;
}

/**
 * Resolves to the process's result, or to the reason why it sent no result. Owners take turns; an owner is the person
 * who needs the result, or another key. Rejects only when the signal aborts, with the signal's reason.
 */
export type AskProcess<Job, Answer> = (job: Job, owner: string, signal: AbortSignal) => Promise<Answer | Undone>;

/**
 * Runs jobs one at a time in a separate process, to limit their memory and contain crashes. A thread cannot do that,
 * because V8 ends the whole process when one allocation exceeds a worker's limit (Node 26.10, reproduced).
 */
export function createJobProcess<Job extends object, Answer>(options: JobProcessOptions): AskProcess<Job, Answer> {
  const { program, nodeOptions = [], jobMs, waitMs = WAIT_MS, idleMs = IDLE_MS } = options;
  const inTurn = createFairTurns();
  let child: ChildProcess | undefined;
  let idle: NodeJS.Timeout | undefined;

  function start(): ChildProcess {
    const started = fork(program, [], {
      serialization: "advanced",
      execArgv: [...nodeOptions],
      env: ENVIRONMENT,
      // Discards the libraries' warnings, because they can quote the file.
      stdio: ["ignore", "ignore", "ignore", "ipc", "pipe"],
    });
    // `error` also reports that the process did not start or that writing to it failed.
    for (const event of ["exit", "error"]) started.on(event, () => drop(started));
    bytesOf(started)?.on("error", () => drop(started));
    return started;
  }

  function drop(ended: ChildProcess): void {
    ended.kill("SIGKILL");
    if (child === ended) child = undefined;
  }

  async function run(job: Job, signal: AbortSignal): Promise<Answer | Undone> {
    clearTimeout(idle);
    const worker = (child ??= start());
    worker.ref();
    worker.channel?.ref();
    bytesOf(worker)?.ref();
    try {
      return await untilAborted(ask<Answer>(worker, job), signal);
    } catch (error) {
      drop(worker);
      throw error;
    } finally {
      worker.unref();
      worker.channel?.unref();
      bytesOf(worker)?.unref();
      idle = setTimeout(() => drop(worker), idleMs).unref();
    }
  }

  return async (job, owner, signal) => {
    const patience = AbortSignal.timeout(waitMs);
    const late = new AbortController();
    let isBegun = false;
    const task = async () => {
      isBegun = true;
      const timer = setTimeout(() => late.abort(), jobMs);
      try {
        return await run(job, AbortSignal.any([signal, late.signal]));
      } finally {
        clearTimeout(timer);
      }
    };
    try {
      return await inTurn(owner, task, AbortSignal.any([signal, patience]));
    } catch (cause) {
      signal.throwIfAborted();
      if (!isBegun) return { problem: { kind: "busy" }, cause };
      return { problem: { kind: late.signal.aborted ? "too-slow" : "failed" }, cause };
    }
  };
}

/** Rejects if the process ends before it answers. */
async function ask<Answer>(worker: ChildProcess, job: object): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const bytes = bytesOf(worker);
  const onEnd = (cause: unknown) => reject(new Error("The process ended before it responded.", { cause }));
  const onMessage = (answer: unknown) => {
    if (bytes !== undefined) resolve(unpack(answer as Packed, bytes) as Promise<Answer>);
  };
  worker.once("message", onMessage);
  worker.once("exit", onEnd);
  worker.once("error", onEnd);
  try {
    const { message, parts } = pack(job);
    worker.send(message, (error) => {
      if (error !== null) onEnd(error);
    });
    for (const part of parts) bytes?.write(part);
    return await promise;
  } finally {
    worker.off("message", onMessage);
    worker.off("exit", onEnd);
    worker.off("error", onEnd);
  }
}

/** Returns the stream that carries bytes alongside the messages; undefined if the process did not start. */
function bytesOf({ stdio }: Pick<ChildProcess, "stdio">): Socket | undefined {
  const stream = stdio.at(BYTES_FD);
  return stream instanceof Socket ? stream : undefined;
}
