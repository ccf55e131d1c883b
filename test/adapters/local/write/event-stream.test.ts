import { connect } from "node:net";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Hello, Progress, Row } from "../../../../adapters/local/page/wire.ts";
import { createChatList } from "../../../../adapters/local/store/chats.ts";
import { createMessages } from "../../../../adapters/local/store/messages.ts";
import { openTables } from "../../../../adapters/local/store/tables.ts";
import { createEventStream } from "../../../../adapters/local/write/event-stream.ts";
import { NO_RIGHT } from "../../../../src/port/right.ts";
import type { Draft, ReplySink } from "../../../../src/port/sink.ts";
import { type LocalPage, openEvents, startLocalPage } from "../../../support/local-page.ts";
import { toMessageInput } from "../message-input.ts";

const HELLO = { epoch: "e" } as Hello;
const signal = new AbortController().signal;

function draft(markdown: string): Draft {
  return { markdown, buttons: [], streaming: true };
}

function startEventStream() {
  const tables = openTables(new DatabaseSync(":memory:"));
  const messages = createMessages(tables);
  return { tables, messages, eventStream: createEventStream(tables, createChatList(tables), messages, HELLO) };
}

describe("the event stream of the local page", () => {
  let page: LocalPage;
  let sink: ReplySink;

  beforeEach(async () => {
    page = await startLocalPage();
    await page.send({ text: "hello" });
    const [event] = page.events;
    if (event === undefined) throw new Error("Nothing was accepted.");
    sink = page.adapter.sink(event.reply, NO_RIGHT);
  });

  afterEach(() => page.close());

  test("the event stream sends each row once, in the order of changes, and then reports that the page is up to date", async () => {
    const { id } = await sink.post(draft("one"), "n1", signal);
    await sink.post(draft("two"), "n2", signal);
    await sink.edit(id, draft("one more"), signal);
    const seqs = (await page.rows()).map((row) => row.seq);
    expect(seqs).toEqual([...seqs].sort((a, b) => a - b));
    const messages = (await page.rows()).filter((row) => row.type === "message");
    expect(messages.map((row) => row.text)).toEqual(["hello", "two", "one more"]);
  });

  test("the event stream continues after the last change a page has, given by query or by Last-Event-ID", async () => {
    const before = (await page.rows()).at(-1)?.seq ?? 0;
    await sink.post(draft("news"), "n", signal);
    expect(await page.rows(before)).toMatchObject([{ text: "news" }]);
    for await (const { event, data } of openEvents(`${page.url}/local/events?since=0`, {
      "Last-Event-ID": String(before),
    })) {
      if (event === "row") expect(JSON.parse(data)).toMatchObject({ text: "news" });
      if (event === "ready") break;
    }
  });

  test("the event stream sends every edit at once, with the number of the change", async () => {
    const { id } = await sink.post(draft("1"), "n", signal);
    const seen: string[] = [];
    const ids: number[] = [];
    for await (const { event, data, id: seq } of openEvents(`${page.url}/local/events`)) {
      if (event !== "row") continue;
      const row = JSON.parse(data) as Row;
      if (row.type !== "message" || `local:${row.id}` !== id) continue;
      seen.push(row.text);
      ids.push(Number(seq));
      if (seen.length === 4) break;
      await sink.edit(id, draft(String(seen.length + 1)), signal);
    }
    expect(seen).toEqual(["1", "2", "3", "4"]);
    expect(ids).toEqual([...ids].sort((a, b) => a - b));
  });

  test("the event stream sends a tombstone to a page that knew the message, and nothing to a page that did not", async () => {
    const { id } = await sink.post(draft("soon gone"), "n", signal);
    const since = (await page.rows()).at(-1)?.seq ?? 0;
    await sink.remove(id, signal);
    expect(await page.rows(since)).toMatchObject([{ isDeleted: true, text: "", buttons: [], files: [] }]);
    expect((await page.rows()).filter((row) => row.type === "message")).toHaveLength(1);
  });

  test("the event stream reports deletions to a page that is still catching up", async () => {
    const { tables, messages, eventStream } = startEventStream();
    const ids = Array.from({ length: 300 }, (_, n) =>
      tables.inTransaction(() => messages.insert(toMessageInput(`bot:${n}`, { text: `${n}` })).id),
    );
    tables.inTransaction(() => messages.erase(ids[1] ?? 0));

    // The stream prepares nothing in advance: each read produces one step.
    const reader = eventStream.open(0).getReader();
    const read = async () => new TextDecoder().decode((await reader.read()).value);
    expect(await read()).toContain("event: hello");
    const first = await read();
    expect(first).toContain('"text":"0"');
    expect(first).not.toContain('"text":"299"');
    tables.inTransaction(() => messages.erase(ids[0] ?? 0));
    const second = await read();
    const deleted = [...second.matchAll(/"id":(\d+),[^\n]*"isDeleted":true/g)].map(([, id]) => Number(id));
    expect(deleted).toEqual([ids[0]]);
    await reader.cancel();
  });

  test("the event stream shows progress until there is text or it is removed", async () => {
    const seen: Progress[][] = [];
    for await (const { event, data } of openEvents(`${page.url}/local/events`)) {
      if (event !== "progress") continue;
      seen.push(JSON.parse(data) as Progress[]);
      if (seen.length === 1) await sink.progress("thinking", signal);
      if (seen.length === 2) await sink.progress("looking up the time", signal);
      if (seen.length === 3) await sink.post(draft("It is noon."), "n", signal);
      if (seen.length === 4) break;
    }
    const at = { chatId: "chat-1", turnId: null };
    expect(seen).toEqual([[], [{ ...at, text: "thinking" }], [{ ...at, text: "looking up the time" }], []]);
    expect(JSON.stringify(page.database.prepare("SELECT * FROM local_messages").all())).not.toContain("thinking");
  });

  test("the event stream shows a gateway problem until it is over, also to a page that opens later", async () => {
    const { eventStream } = startEventStream();
    const notice = { state: "key refused", sentence: "Check GATEWAY_API_KEY." };
    eventStream.setGateway(notice);
    const reader = eventStream.open(0).getReader();
    const readGateway = async () => {
      for (;;) {
        const [, data] =
          /event: gateway\ndata: (.*)\n/.exec(new TextDecoder().decode((await reader.read()).value)) ?? [];
        if (data !== undefined) return JSON.parse(data) as unknown;
      }
    };
    expect(await readGateway()).toEqual(notice);
    eventStream.setGateway(undefined);
    expect(await readGateway()).toBeNull();
    await reader.cancel();
    eventStream.close();
  });

  test("the event stream stores nothing for a browser that has stopped reading, and sends it the newest state when it reads again", async () => {
    const { id } = await sink.post(draft(""), "n", signal);
    const { port, hostname } = new URL(page.url);
    const socket = connect(Number(port), hostname);
    socket.write(`GET /local/events HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`);
    let received = "";
    const sawReady = Promise.withResolvers<void>();
    const sawEnd = Promise.withResolvers<void>();
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
      if (received.includes("event: ready")) sawReady.resolve();
      if (received.includes("the end")) sawEnd.resolve();
    });
    await sawReady.promise;
    socket.pause();
    // Much more than a socket's buffers can contain. Each state of the message has 4 kB.
    const states = 6000;
    for (let n = 0; n < states; n++) {
      await sink.edit(id, draft(`${n} ${"x".repeat(3900)}`), signal);
      if (n % 20 === 0) await new Promise(setImmediate);
    }
    await sink.edit(id, draft("the end"), signal);
    socket.resume();
    await sawEnd.promise;
    socket.destroy();
    expect(received.split("event: row").length).toBeLessThan(states / 2);
  });

  test.for(["-1", "x", "1.5", "99999999999999999999"])("the event stream refuses to resume from %s", async (since) => {
    expect((await fetch(`${page.url}/local/events?since=${since}`)).status).toBe(400);
  });
});
