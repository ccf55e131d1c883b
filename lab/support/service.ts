import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { createPatience } from "./patience.ts";

export const ROOT = join(import.meta.dirname, "../..");

/** Settings for each process of the service. The compile cache saves a fifth of a start's processor time. */
export const PROCESS_ENV = {
  PATH: process.env["PATH"],
  NODE_COMPILE_CACHE: join(ROOT, "node_modules/.cache/palaver-compiled"),
};

/** Avoids garbage collection, which saves a sixth of a start. Most of these processes do little more than start. */
const ROOMY = "--min-semi-space-size=64";

export interface RunningService {
  url: string;
  pid: number;
  lines: string[];
  /** Sends a signal. Resolves to the exit code, or to the name of the signal that ended the process. */
  end(signal: NodeJS.Signals): Promise<number | string>;
}

/** Creates a data folder. The caller must call `remove`. */
export async function makeDataDir(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), "palaver-test-"));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}

/**
 * Starts the service as a separate process and resolves when it is ready. Its environment has only `env` and the
 * variables that every process needs. Rejects with the service's output if it exits first or prints nothing for too
 * long.
 */
export async function startService(dataDir: string, env: Record<string, string> = {}): Promise<RunningService> {
  return whenReady(launchService(dataDir, env));
}

/** Starts the service in a folder with its own `.env`, as in a checkout. */
export async function startServiceIn(folder: string, env: Record<string, string> = {}): Promise<RunningService> {
  return whenReady(launchService(join(folder, "data"), env, folder));
}

async function whenReady({ ready, exited, ...service }: LaunchedService): Promise<RunningService> {
  const url = await Promise.race([
    ready,
    exited.then((code) => Promise.reject(new Error(`The service exited with ${code}:\n${service.lines.join("\n")}`))),
  ]);
  return { ...service, url };
}

export interface LaunchedService extends Omit<RunningService, "url"> {
  /** Resolves to the service's address when it is ready. */
  ready: Promise<string>;
  /** Resolves to the exit code, or to the name of the signal that ended the process. */
  exited: Promise<number | string>;
}

export function launchService(dataDir: string, env: Record<string, string> = {}, cwd = ROOT): LaunchedService {
  // Ignore the developer's own `.env`.
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

/** Runs the service with a wrong configuration until it exits. */
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
    reject(new Error(`The service did not become ready:\n${lines.join("\n")}`));
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
