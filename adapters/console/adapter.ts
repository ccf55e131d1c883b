import { randomUUID } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import type { Readable } from "node:stream";
import { createKeyedQueue } from "../../src/concurrency/keyed-queue.ts";
import { createEvenPacer, OWN_SURFACE_PACE } from "../../src/pacing/even.ts";
import type { Adapter } from "../../src/port/adapter.ts";
import { SinkError } from "../../src/port/errors.ts";
import type { InboundEvent } from "../../src/port/events.ts";
import type { Button, Draft, OutboundFile, ReplySink, SinkLimits } from "../../src/port/sink.ts";
import { readSmallPrint } from "../../src/text/sources.ts";

const PLATFORM = "console";
const GREETING = "Write to Palaver. /help lists what it can do, /new starts another conversation, Ctrl+C exits.\n";
const LIMITS: SinkLimits = {
  maxLength: 100_000,
  lengthOf: (text) => text.length,
  maxFileBytes: 100 * 1024 * 1024,
};

export interface ConsoleAdapterOptions {
  input: Readable;
  output: { write(text: string): unknown };
  /** The bot's images and other files are saved here. */
  filesDir: string;
  /** Unix milliseconds. */
  now(): number;
  onEnd(): void;
}

/**
 * One person at a terminal. A line is a message to the bot. `/name …` is a command, or presses the button of that name
 * under the newest message that has it; `/new` starts another conversation. An edit only prints the added text, because
 * printed text cannot change.
 */
export function createConsoleAdapter({ input, output, filesDir, now, onEnd }: ConsoleAdapterOptions): Adapter {
  /** The printed text of each message, by its id. Undefined once the message was removed. */
  const printed = new Map<string, string | undefined>();
  let lines: Interface | undefined;
  /** The buttons of each message. Messages are in the order in which they were first printed. */
  const buttons = new Map<string, readonly Button[]>();
  let conversationId = `${PLATFORM}:${randomUUID()}`;
  let isListening = false;

  function toEvent(line: string): InboundEvent {
    const key = `${PLATFORM}:${randomUUID()}`;
    const reply = { platform: PLATFORM, channelId: "terminal", isDirect: true } as const;
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
    const base = { key, conversationId, author: { id: "you", name: "You", timeZone }, reply, at: now() };
    const [, name, text = ""] = /^\/(\w+)\s*(.*)$/.exec(line) ?? [];
    const button = [...buttons.values()].flat().findLast(({ action }) => action === name);
    if (button !== undefined && button.action !== "edit" && text === "")
      return { ...base, kind: "action", action: button.action, turnId: button.turnId };
    if (name !== undefined) return { ...base, kind: "command", name, text };
    return { ...base, kind: "message", messageId: key, text: line, attachments: [], addressed: "bot" };
  }

  /** Prints the new part of a message, or the whole message if its start has changed. */
  function print(id: string, { markdown, source, streaming, ...draft }: Draft): void {
    if (markdown.length > LIMITS.maxLength) throw new SinkError("rejected", "The message is too long.");
    const before = printed.get(id);
    const text = streaming ? (source ?? markdown) : toPlain(markdown);
    // Leaves out `edit`, because it opens a form on other platforms, and a terminal has no forms.
    const shown = draft.buttons.filter(({ action }) => action !== "edit");
    buttons.set(id, shown);
    const hints = shown.map(({ action, label }) => `  [/${action}: ${label}]\n`).join("");
    if (before === undefined) output.write(`${streaming ? hints : ""}Palaver: ${text}`);
    else output.write(text.startsWith(before) ? text.slice(before.length) : `\nPalaver, again: ${text}`);
    if (!streaming) output.write(`\n${hints}`);
    // Ends a finished message with a newline, so that a later text never continues it.
    printed.set(id, streaming ? text : `${text}\n`);
  }

  async function save({ name, bytes }: OutboundFile): Promise<string> {
    const path = join(filesDir, `${randomUUID().slice(0, 8)}-${basename(name)}`);
    try {
      await mkdir(filesDir, { recursive: true });
      await writeFile(path, bytes, { mode: 0o600 });
    } catch (cause) {
      throw new SinkError("unavailable", "The file could not be saved.", { cause });
    }
    return path;
  }

  async function once(nonce: string, signal: AbortSignal, write: (id: string) => unknown): Promise<{ id: string }> {
    signal.throwIfAborted();
    const id = `${PLATFORM}:${nonce}`;
    if (!printed.has(id)) await write(id);
    return { id };
  }

  const sink: ReplySink = {
    limits: LIMITS,
    budget: { key: PLATFORM, createPacer: () => createEvenPacer(OWN_SURFACE_PACE) },
    post: (draft, nonce, signal) => once(nonce, signal, (id) => print(id, draft)),
    async edit(id, draft, signal) {
      signal.throwIfAborted();
      if (printed.has(id) && printed.get(id) === undefined) throw new SinkError("gone", "The message was removed.");
      print(id, draft);
      return {};
    },
    upload: (files, caption, nonce, signal) =>
      once(nonce, signal, async (id) => {
        const paths = await Promise.all(files.map(save));
        print(id, caption ?? { markdown: "", buttons: [], streaming: false });
        for (const path of paths) output.write(`  (file: ${path})\n`);
      }),
    async remove(id, signal) {
      signal.throwIfAborted();
      if (printed.get(id) !== undefined) output.write("  (removed)\n");
      printed.set(id, undefined);
      buttons.delete(id);
    },
    // Shows no progress: the cursor is already where the answer will appear.
    progress: async () => {},
  };

  return {
    platform: PLATFORM,
    isOwn: true,
    async listen(accept) {
      isListening = true;
      if ("isTTY" in input) output.write(GREETING);
      lines = createInterface({ input });
      // Handles one line after another, because the input can be a whole script.
      const queue = createKeyedQueue();
      async function onLine(line: string): Promise<void> {
        if (line === "/new") conversationId = `${PLATFORM}:${randomUUID()}`;
        else if (line !== "" && isListening) await accept(toEvent(line));
      }
      lines.on("line", (line) => {
        queue
          .run(PLATFORM, () => onLine(line.trim()))
          .catch(() => output.write("  (That didn't go through. Please send it again.)\n"));
      });
      lines.on("close", () => void queue.idle().then(onEnd));
    },
    sink: () => sink,
    openAttachment: () => Promise.reject(new Error("You can't attach files in the terminal.")),
    isConnected: () => isListening,
    async pause() {
      isListening = false;
    },
    async close() {
      lines?.removeAllListeners("close").close();
    },
  };
}

/** Lists the sources with their addresses, because a terminal has neither small print nor links. */
function toPlain(markdown: string): string {
  const { text, lines } = readSmallPrint(markdown);
  return [text, ...lines.map(({ number, label, url }) => `  (${number}: ${label}, ${url})`)].join("\n");
}
