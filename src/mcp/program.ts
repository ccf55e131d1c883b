import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import type { McpTransport } from "../config/mcp-servers.ts";
import { LoggableError } from "../port/errors.ts";
import { createFloodGate } from "./flood.ts";

const MAX_LINE_BYTES = 8 * 1024 * 1024;
/** A closing program has this time to clean up. Then it gets SIGTERM, and after the same time SIGKILL. */
const ENDING_MS = 2_000;
const LAST_WORDS_MS = 500;
const LINE_FEED = 0x0a;
const MAX_WORDS_CHARS = 8_000;
/** Matches the lines that Node and npm print around an error. */
const MORE = /^(?:Node\.js v|Emitted '|npm error (?:A complete log|code |errno |syscall |path ))/;

/** Process groups of the running programs. This process kills these groups when it exits. */
const running = new Set<number>();
process.on("exit", () => {
  for (const pid of running) stop(pid, "SIGKILL");
});

export interface ProgramOptions {
  program: Extract<McpTransport, { type: "stdio" }>;
  /** Added to the program's environment. */
  env: Readonly<Record<string, string>>;
  /** Called with what the program writes to stderr. The text is untrusted. */
  onWords(text: string): void;
}

export interface ProgramTransport extends Transport {
  readonly pid: number | undefined;
  readonly stderr: Readable | undefined;
  /** Why the program ended before `close` was called, with a quote of its last output; else undefined. */
  readonly end: LoggableError | undefined;
  /** Returns the line on stderr that best explains a failure; "" without output. The text is untrusted. */
  lastLine(): string;
}

/**
 * Runs a server program and exchanges messages as lines on stdin and stdout. Unlike the SDK's transport, it starts the
 * program only once and stops a program that sends too much. The SDK recognizes a program's transport by `pid` and
 * `stderr`.
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
      // Ignore other lines: some programs print a greeting to stdout.
    }
  }

  function giveUp(reason: string): void {
    end ??= new LoggableError(reason);
    transport.onerror?.(end);
    // A program that sends too much gets no time to clean up.
    if (child !== undefined) stop(child.pid, "SIGKILL");
    void close();
  }

  /** Splits the output into lines. Ignores output after the connection has ended. */
  function readLines(output: Readable): void {
    let parts: Buffer[] = [];
    let partBytes = 0;
    output.on("data", (chunk: Buffer) => {
      let from = 0;
      for (;;) {
        // The previous line may have closed the connection.
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

  /** Waits for the program's last output, but not for a child process that keeps the output open. */
  async function leave(ended: ChildProcessWithoutNullStreams): Promise<void> {
    await Promise.race([once(ended, "close"), sleep(LAST_WORDS_MS, undefined, { ref: false })]);
    if (closing === undefined) end ??= toEnd(ended, words);
    transport.onclose?.();
  }

  const transport: ProgramTransport = {
    async start() {
      // `detached` creates a process group, so that programs started by a launcher such as npx stop too.
      const started = spawn(command, [...args], { env: { ...env, ...own }, stdio: "pipe", detached: true, cwd });
      child = started;
      const { pid } = started;
      if (pid !== undefined) running.add(pid);
      started.on("error", (error) => transport.onerror?.(error));
      started.stdin.on("error", (error) => void unlessExiting(started, () => transport.onerror?.(error)));
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
      await writeLine(child.stdin, JSON.stringify(message));
    },
    close,
    lastLine: () => toLastLine(words),
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

/** Resolves when the input can take more, or is closed. */
async function writeLine(input: Writable, line: string): Promise<void> {
  if (input.write(`${line}\n`)) return;
  await Promise.race([once(input, "drain"), once(input, "close")]).catch(() => undefined);
}

/** Reports that a program closed its input, unless it exits right afterwards. Its exit is then the error to report. */
async function unlessExiting(program: ChildProcessWithoutNullStreams, report: () => void): Promise<void> {
  if (program.exitCode !== null || program.signalCode !== null) return;
  const exited = once(program, "exit").then(() => true);
  if (!(await Promise.race([exited, sleep(LAST_WORDS_MS, false, { ref: false })]))) report();
}

/** Returns the line that names an error, or else the last line. Node prints more lines after the error. */
function toLastLine(words: string): string {
  const lines = words.split("\n").filter((line) => /^\S/.test(line) && !MORE.test(line));
  const ofNpm = lines.find((line) => line.startsWith("npm error "));
  return ofNpm ?? lines.findLast((line) => /error|exception/i.test(line)) ?? lines.at(-1) ?? "";
}

function toEnd({ exitCode, signalCode }: ChildProcessWithoutNullStreams, words: string): LoggableError {
  const how = signalCode === null ? `exited with code ${exitCode}` : `was killed by ${signalCode}`;
  return new LoggableError(`its program ${how}`, { quote: toLastLine(words) });
}

function stop(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // The whole group has already exited.
  }
}
