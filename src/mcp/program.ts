import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import type { McpTransport } from "../config/mcp-servers.ts";
import { LoggableError } from "../port/errors.ts";
import { createFloodGate } from "./flood.ts";

/** One message at most. */
const MAX_LINE_BYTES = 8 * 1024 * 1024;
/** After its input has ended a program may put things in order, then it is told to end, then it is ended. */
const ENDING_MS = 2_000;
const LAST_WORDS_MS = 500;
const LINE_FEED = 0x0a;
const MAX_WORDS_CHARS = 8_000;
/** Lines after the one that names the error. */
const MORE = /^(?:Node\.js v|Emitted '|npm error A complete log)/;

/** The groups of the programs that run: however heedless, none outlives an exit of this process. */
const running = new Set<number>();
process.on("exit", () => {
  for (const pid of running) stop(pid, "SIGKILL");
});

export interface ProgramOptions {
  program: Extract<McpTransport, { type: "stdio" }>;
  /** Variables that it has besides its own. */
  env: Readonly<Record<string, string>>;
  /** Told what it writes for people. Untrusted text. */
  onWords(text: string): void;
}

export interface ProgramTransport extends Transport {
  readonly pid: number | undefined;
  readonly stderr: Readable | undefined;
  /** The reason if it ended without being closed, with its last words as a quote. */
  readonly end: LoggableError | undefined;
}

/**
 * A server program, spoken to by lines on stdin and stdout. Unlike the SDK's transport it starts a program once, and
 * ends one that never stops talking. The SDK knows a program by `pid` and `stderr`.
 */
export function openProgram({
  program: { command, args, env: own, cwd },
  env,
  onWords,
}: ProgramOptions): ProgramTransport {
  let child: ChildProcessWithoutNullStreams | undefined;
  let closing: Promise<void> | undefined;
  let end: LoggableError | undefined;
  let words = "";
  const mayGoOn = createFloodGate();

  function takeLine(line: Buffer): void {
    if (!mayGoOn(line.length)) return giveUp("it sends too much");
    try {
      const message = JSON.parse(line.toString("utf8")) as JSONRPCMessage;
      if (typeof message === "object" && message !== null) transport.onmessage?.(message);
    } catch {
      // Some programs greet people there too.
    }
  }

  function giveUp(reason: string): void {
    end ??= new LoggableError(reason);
    transport.onerror?.(end);
    // It does not deserve the time to end by itself.
    if (child !== undefined) stop(child.pid, "SIGKILL");
    void close();
  }

  /** Cuts the output into lines. What comes after the end of the connection is not looked at. */
  function readLines(output: Readable): void {
    let parts: Buffer[] = [];
    let partBytes = 0;
    output.on("data", (chunk: Buffer) => {
      let from = 0;
      for (;;) {
        // A line may be the one that ends it.
        if (closing !== undefined) return;
        const end = chunk.indexOf(LINE_FEED, from);
        const part = chunk.subarray(from, end === -1 ? undefined : end);
        parts.push(part);
        partBytes += part.length;
        if (partBytes > MAX_LINE_BYTES) return giveUp("it sends a message that is too large");
        if (end === -1) return;
        takeLine(Buffer.concat(parts));
        [parts, partBytes, from] = [[], 0, end + 1];
      }
    });
  }

  async function close(): Promise<void> {
    closing ??= stopChild();
    await closing;
  }

  async function stopChild(): Promise<void> {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.stdin.end();
    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      const isOver = await Promise.race([exited.then(() => true), sleep(ENDING_MS, false, { ref: false })]);
      if (isOver) return;
      stop(child.pid, signal);
    }
    await exited;
  }

  /** Waits for the program's last output, but not for a child of it that holds the output open. */
  async function leave(ended: ChildProcessWithoutNullStreams): Promise<void> {
    await Promise.race([once(ended, "close"), sleep(LAST_WORDS_MS, undefined, { ref: false })]);
    const how = ended.signalCode === null ? `exited with code ${ended.exitCode}` : `was ended by ${ended.signalCode}`;
    if (closing === undefined) end ??= new LoggableError(`its program ${how}`, { quote: toQuote(words) });
    transport.onclose?.();
  }

  const transport: ProgramTransport = {
    async start() {
      // A group of its own: what a launcher such as npx starts ends with it.
      const started = spawn(command, [...args], { env: { ...env, ...own }, stdio: "pipe", detached: true, cwd });
      child = started;
      const { pid } = started;
      if (pid !== undefined) running.add(pid);
      started.on("error", (error) => transport.onerror?.(error));
      started.stdin.on("error", (error) => transport.onerror?.(error));
      started.stderr.setEncoding("utf8").on("data", (text: string) => {
        words = (words + text).slice(-MAX_WORDS_CHARS);
        onWords(text);
      });
      readLines(started.stdout);
      started.once("exit", () => {
        stop(pid, "SIGKILL");
        if (pid !== undefined) running.delete(pid);
        void leave(started);
      });
      await once(started, "spawn");
    },
    async send(message) {
      if (child === undefined || closing !== undefined) throw new Error("It is not running.");
      if (!child.stdin.write(`${JSON.stringify(message)}\n`)) await once(child.stdin, "drain");
    },
    close,
    get pid() {
      return child?.pid;
    },
    get stderr() {
      return child?.stderr;
    },
    get end() {
      return end;
    },
  };
  return transport;
}

/** The line of its last words that names an error, or the last one: Node and npm write more after it. */
function toQuote(words: string): string {
  const lines = words.split("\n").filter((line) => /^\S/.test(line) && !MORE.test(line));
  const line = lines.findLast((one) => /error|exception/i.test(one)) ?? lines.at(-1);
  return line === undefined ? "" : `: ${line}`;
}

function stop(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // All of it has ended.
  }
}
