import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { untilAborted } from "../concurrency/deadlines.ts";
import { type DecoderAnswer, DecoderError, type DecoderJob, type DecoderResults } from "./decoder-job.ts";
import { createFairTurns } from "./fair-turns.ts";

const PROGRAM = fileURLToPath(new URL("./decoder-process.ts", import.meta.url));
/** Longest that a picture waits for those before it. */
const WAIT_MS = 60_000;
/** Longest for one job. It is several steps, of which most kinds keep to a limit of their own. */
const JOB_MS = 40_000;
/** After this the process ends, and its memory is given back. */
const IDLE_MS = 30_000;
/** The child inherits no environment. glibc keeps what was freed in every arena: with one, 51 MiB instead of 328 after 25 large AVIFs. */
const ENVIRONMENT = { MALLOC_ARENA_MAX: "1", UV_THREADPOOL_SIZE: "1" };

export interface DecoderOptions {
  /** Path of what runs in the process. */
  program?: string;
  waitMs?: number;
  jobMs?: number;
  idleMs?: number;
}

/** `owner` is the person for whom it is done, or another word for who has to wait; owners take turns. */
export type Decode = <J extends DecoderJob>(
  job: J,
  owner: string,
  signal: AbortSignal,
) => Promise<DecoderResults[J["type"]]>;

/** The one place where this process has pictures decoded, so that the memory for it is bounded. */
export const decode: Decode = createDecoder();

/**
 * Decodes one picture at a time, in a process of its own: what a decoder takes, keeps or breaks, and how long it
 * takes, ends with that. Rejects with a `DecoderError`, or with the signal's reason, also in the middle of a picture.
 */
export function createDecoder(options: DecoderOptions = {}): Decode {
  const { program = PROGRAM, waitMs = WAIT_MS, jobMs = JOB_MS, idleMs = IDLE_MS } = options;
  const inTurn = createFairTurns();
  let child: ChildProcess | undefined;
  let idle: NodeJS.Timeout | undefined;

  function start(): ChildProcess {
    const started = fork(program, [], {
      serialization: "advanced",
      execArgv: [],
      env: ENVIRONMENT,
      // Warnings of the libraries may quote the file.
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    });
    // Also keeps a failure to start, or to be written to, from being nobody's.
    for (const event of ["exit", "error"]) started.on(event, () => drop(started));
    return started;
  }

  function drop(ended: ChildProcess): void {
    ended.kill("SIGKILL");
    if (child === ended) child = undefined;
  }

  async function run(job: DecoderJob, signal: AbortSignal): Promise<DecoderAnswer> {
    clearTimeout(idle);
    const worker = (child ??= start());
    worker.ref();
    worker.channel?.ref();
    try {
      return await untilAborted(ask(worker, job), signal);
    } catch (error) {
      drop(worker);
      throw error;
    } finally {
      worker.unref();
      worker.channel?.unref();
      idle = setTimeout(() => drop(worker), idleMs).unref();
    }
  }

  return async <J extends DecoderJob>(job: J, owner: string, signal: AbortSignal) => {
    const patience = AbortSignal.timeout(waitMs);
    const late = new AbortController();
    let isBegun = false;
    const task = async () => {
      isBegun = true;
      const timer = setTimeout(() => late.abort(new DecoderError({ kind: "too-slow" })), jobMs);
      try {
        return await run(job, AbortSignal.any([signal, late.signal]));
      } finally {
        clearTimeout(timer);
      }
    };
    try {
      const answer = await inTurn(owner, task, AbortSignal.any([signal, patience]));
      if ("problem" in answer) throw new DecoderError(answer.problem);
      return answer.value as DecoderResults[J["type"]];
    } catch (error) {
      signal.throwIfAborted();
      if (!isBegun) throw new DecoderError({ kind: "busy" }, { cause: error });
      throw error instanceof DecoderError ? error : new DecoderError({ kind: "failed" }, { cause: error });
    }
  };
}

/** Rejects when the process ends before it has answered. */
async function ask(worker: ChildProcess, job: DecoderJob): Promise<DecoderAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<DecoderAnswer>();
  const onEnd = (cause: unknown) => reject(new DecoderError({ kind: "failed" }, { cause }));
  worker.once("message", resolve);
  worker.once("exit", onEnd);
  worker.once("error", onEnd);
  try {
    worker.send(job, (error) => {
      if (error !== null) onEnd(error);
    });
    return await promise;
  } finally {
    worker.off("message", resolve);
    worker.off("exit", onEnd);
    worker.off("error", onEnd);
  }
}
