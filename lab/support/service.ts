import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { createPatience } from "./patience.ts";

export const ROOT = join(import.meta.dirname, "../..");

/** The settings that every process of the service needs. Kept code saves each of the many starts a fifth of its computing time. */
export const PROCESS_ENV = {
  PATH: process.env["PATH"],
  NODE_COMPILE_CACHE: join(ROOT, "node_modules/.cache/palaver-compiled"),
};

/** To collect no garbage while it starts takes a process a sixth less; most of these do little more than start. */
const ROOMY = "--min-semi-space-size=64";

export interface RunningService {
  url: string;
  pid: number;
  /** Every line the process has printed. */
  lines: string[];
  /** Sends a signal and resolves to the exit code, or to the signal that ended it. */
  end(signal: NodeJS.Signals): Promise<number | string>;
}

/** A folder for the service's data, gone after the test. */
export async function makeDataDir(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), "palaver-test-"));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}

/**
 * Starts the service as a process of its own and resolves when it says that it is ready. Only what is given and what
 * a process needs at all stands in its environment. Rejects with its output when it ends before that, or says nothing
 * more for long.
 */
export async function startService(dataDir: string, env: Record<string, string> = {}): Promise<RunningService> {
  return whenReady(launchService(dataDir, env));
}

/** The same as in a checkout of its own: in this folder, with the `.env` that may be there. */
export async function startServiceIn(folder: string, env: Record<string, string> = {}): Promise<RunningService> {
  return whenReady(launchService(join(folder, "data"), env, folder));
}

async function whenReady({ ready, exited, ...service }: LaunchedService): Promise<RunningService> {
  const url = await Promise.race([
    ready,
    exited.then((code) => Promise.reject(new Error(`The service ended with ${code}:\n${service.lines.join("\n")}`))),
  ]);
  return { ...service, url };
}

export interface LaunchedService extends Omit<RunningService, "url"> {
  /** Resolves to its address when it says that it is ready. */
  ready: Promise<string>;
  /** Resolves to the exit code, or to the signal that ended it. */
  exited: Promise<number | string>;
}

/** The same without waiting for anything. */
export function launchService(dataDir: string, env: Record<string, string> = {}, cwd = ROOT): LaunchedService {
  // An .env of whoever runs the tests is none of theirs.
  const options = [
    ROOMY,
    "--disable-warning=ExperimentalWarning",
    ...(cwd === ROOT ? [] : ["--env-file-if-exists=.env"]),
  ];
  const child = spawn(process.execPath, [...options, join(ROOT, "src/main.ts")], {
    cwd,
    env: { ...PROCESS_ENV, DATA_DIR: dataDir, PORT: "0", npm_lifecycle_event: "test", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const lines: string[] = [];
  const exited = new Promise<number | string>((resolve) =>
    child.once("close", (code, signal) => resolve(signal ?? code ?? 0)),
  );
  return {
    pid: child.pid ?? 0,
    ready: watch(child, lines),
    exited,
    lines,
    async end(signal) {
      child.kill(signal);
      return exited;
    },
  };
}

/** Runs the service to its end, for configurations that do not start. */
export async function runService(env: Record<string, string>): Promise<{ code: number | string; output: string }> {
  const child = spawn(process.execPath, ["src/main.ts"], {
    cwd: ROOT,
    env: { ...PROCESS_ENV, PORT: "0", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stdout.on("data", (data) => void (output += String(data)));
  child.stderr.on("data", (data) => void (output += String(data)));
  const [code, signal] = (await once(child, "close")) as [number | null, string | null];
  return { code: signal ?? code ?? 0, output };
}

function watch(child: ChildProcess, lines: string[]): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const patience = createPatience(() => {
    reject(new Error(`The service does not come to be ready:\n${lines.join("\n")}`));
    child.kill("SIGKILL");
  });
  child.once("close", patience.end);
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null) continue;
    createInterface({ input: stream }).on("line", (line) => {
      lines.push(line);
      patience.moved();
      const url = /"url":"(http[^"]+)"/.exec(line)?.[1];
      if (url === undefined) return;
      patience.end();
      resolve(url);
    });
  }
  return promise;
}
