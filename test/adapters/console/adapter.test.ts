import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { PassThrough } from "node:stream";
import { afterEach, describe, expect, test } from "vitest";
import { createConsoleAdapter } from "../../../adapters/console/adapter.ts";
import type { Accept, InboundEvent } from "../../../src/port/events.ts";
import { NO_RIGHT } from "../../../src/port/right.ts";
import { type AdapterUnderTest, adapterContract } from "../../support/adapter-contract.ts";
import { readPaper } from "./paper.ts";

adapterContract("console", startUnderTest, {
  noRedelivery: "a terminal hands over each line once",
  noEdits: "what was entered at a terminal stays",
  noAttachments: "nobody can attach a file at a terminal",
  noDiscussion: "one person talks there, and all of it is heard",
});

interface Terminal {
  adapter: ReturnType<typeof createConsoleAdapter>;
  text(): string;
  /** Enters a line. Resolves when the bot accepted it, and rejects when the terminal refuses it. */
  enter(line: string): Promise<void>;
  ended: Promise<void>;
  end(): void;
}

async function startTerminal(accept: Accept, filesDir = tmpdir(), input = new PassThrough()): Promise<Terminal> {
  const ended = Promise.withResolvers<void>();
  let text = "";
  let taken = Promise.withResolvers<void>();
  const write = (more: string) => {
    text += more;
    if (more.includes("didn't go through")) taken.reject(new Error(more));
  };
  const adapter = createConsoleAdapter({ input, output: { write }, filesDir, now: Date.now, onEnd: ended.resolve });
  await adapter.listen(async (event) => {
    await accept(event);
    taken.resolve();
  });
  return {
    adapter,
    text: () => text,
    enter(line) {
      taken = Promise.withResolvers();
      input.write(`${line}\n`);
      return adapter.isConnected() ? taken.promise : Promise.resolve();
    },
    ended: ended.promise,
    end: () => input.end(),
  };
}

async function startUnderTest(accept: Accept): Promise<AdapterUnderTest> {
  const terminal = await startTerminal(accept);
  return {
    adapter: terminal.adapter,
    mention: "@You",
    begin: (text) => terminal.enter(`/new\n${text}`),
    goOn: terminal.enter,
    redeliver: () => Promise.reject(new Error("Not at a terminal.")),
    editNewest: () => Promise.reject(new Error("Not at a terminal.")),
    deleteNewest: () => Promise.reject(new Error("Not at a terminal.")),
    press: (_, label) => terminal.enter(`/${new RegExp(`\\[/(\\w+): ${label}\\]`).exec(terminal.text())?.[1]}`),
    seen: async () =>
      readPaper(terminal.text()).map(({ text, files, buttons }) => ({
        text,
        fileNames: files.map((path) => basename(path).slice("12345678-".length)),
        buttons: buttons.map(({ label }) => label),
      })),
    close: () => terminal.adapter.close(),
  };
}

describe("the terminal", () => {
  const signal = new AbortController().signal;
  const cleanups: Array<() => Promise<void>> = [];
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0)) await cleanup();
  });

  async function start(filesDir?: string): Promise<Terminal & { events: InboundEvent[] }> {
    const events: InboundEvent[] = [];
    const terminal = await startTerminal(async (event) => void events.push(event), filesDir);
    cleanups.push(() => terminal.adapter.close());
    return { ...terminal, events };
  }

  async function startReply(filesDir?: string) {
    const terminal = await start(filesDir);
    await terminal.enter("hello");
    const [event] = terminal.events;
    if (event === undefined) throw new Error("Nothing was accepted.");
    return { ...terminal, sink: terminal.adapter.sink(event.reply, NO_RIGHT) };
  }

  test("the terminal greets a person, and prints no greeting for piped input", async () => {
    const input = Object.assign(new PassThrough(), { isTTY: true });
    const greeting = await startTerminal(async () => {}, tmpdir(), input);
    cleanups.push(() => greeting.adapter.close());
    expect(greeting.text()).toMatch(/^Write to Palaver\. \/help .*\n$/);
    expect((await start()).text()).toBe("");
  });

  test("the terminal prints only the new part of a growing answer, and a replaced text completely", async () => {
    const { sink, text } = await startReply();
    const draft = { buttons: [], streaming: true };
    const { id } = await sink.post({ ...draft, markdown: "Once **upon**", source: "Once **upon" }, "n", signal);
    await sink.edit(id, { ...draft, markdown: "Once **upon a** time" }, signal);
    await sink.edit(id, { ...draft, markdown: "Another text", streaming: false }, signal);
    expect(text()).toBe("Palaver: Once **upon a** time\nPalaver, again: Another text\n");
  });

  test("the terminal saves a file, readable by no other user, and prints its path", async () => {
    const folder = await mkdtemp(join(tmpdir(), "palaver-console-"));
    cleanups.push(() => rm(folder, { recursive: true, force: true }));
    const { sink, text } = await startReply(folder);
    const bytes = new TextEncoder().encode("a,b\n");
    await sink.upload([{ name: "../table.csv", contentType: "text/csv", bytes }], undefined, "n", signal);
    const [, path = ""] = /\(file: (.+)\)/.exec(text()) ?? [];
    expect(path.startsWith(folder)).toBe(true);
    expect(await readFile(path, "utf8")).toBe("a,b\n");
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  test("the terminal prints the answer of an earlier attempt again, and continues it", async () => {
    const { sink, text } = await startReply();
    await sink.edit("console:of-an-earlier-run", { markdown: "All of it.", buttons: [], streaming: false }, signal);
    expect(text()).toBe("Palaver: All of it.\n");
  });

  test("the terminal saves a file again on the next upload if saving it failed", async () => {
    const folder = await mkdtemp(join(tmpdir(), "palaver-console-"));
    cleanups.push(() => rm(folder, { recursive: true, force: true }));
    // Saving fails because a file has the name of the folder that the terminal creates.
    await writeFile(join(folder, "files"), "");
    const { sink, text } = await startReply(join(folder, "files"));
    const files = [{ name: "table.csv", contentType: "text/csv", bytes: new TextEncoder().encode("a,b\n") }];
    await expect(sink.upload(files, undefined, "n", signal)).rejects.toMatchObject({ kind: "unavailable" });
    await rm(join(folder, "files"));
    await sink.upload(files, undefined, "n", signal);
    expect(text()).toContain("table.csv)");
  });

  test("the terminal shows no button that would open a form on other platforms", async () => {
    const { sink, text } = await startReply();
    const buttons = [{ action: "edit" as const, turnId: "t", label: "Edit" }];
    await sink.post({ markdown: "A boat.", buttons, streaming: false }, "n", signal);
    expect(text()).toBe("Palaver: A boat.\n");
  });

  test("the terminal handles all earlier lines before it reports the end of its input", async () => {
    const { enter, end, ended, events } = await start();
    void enter("one");
    void enter("two");
    end();
    await ended;
    expect(events).toMatchObject([{ text: "one" }, { text: "two" }]);
  });
});
