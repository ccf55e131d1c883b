import { describe, expect, test } from "vitest";
import { type ChunkStream, createChunkStream } from "../../src/gateway/chunk-stream.ts";
import type { ChatCompletionChunk } from "../../src/gateway/chunks.ts";
import { open } from "../support/gateway-client.ts";

const OVER = { done: true, value: undefined };

function chunk(id: string): ChatCompletionChunk {
  return { id, object: "chat.completion.chunk", created: 1, model: "m", choices: [] };
}

function start(signal: AbortSignal = open): ChunkStream & { calls: string[] } {
  const calls: string[] = [];
  const call = (name: string) => () => void calls.push(name);
  const source = { begin: call("begin"), resume: call("resume"), leave: call("leave") };
  return { ...createChunkStream(source, signal), calls };
}

/** Ids of what is read until the end, or until it throws. */
async function readAll({ chunks }: ChunkStream): Promise<{ ids: string[]; error: unknown }> {
  const ids: string[] = [];
  try {
    for await (const { id } of chunks) ids.push(id);
  } catch (error) {
    return { ids, error };
  }
  return { ids, error: undefined };
}

describe("a stream of chunks", () => {
  test("begins with the first read and not before", async () => {
    const { chunks, calls, push } = start();
    expect(calls).toEqual([]);
    const first = chunks.next();
    expect(calls).toEqual(["begin"]);
    push([chunk("a")]);
    await expect(first).resolves.toEqual({ done: false, value: chunk("a") });
    void chunks.next();
    expect(calls).toEqual(["begin"]);
  });

  test("gives every chunk once and in order, however they were pushed and read", async () => {
    const stream = start();
    const reads = [stream.chunks.next(), stream.chunks.next(), stream.chunks.next()];
    stream.push([chunk("a"), chunk("b")]);
    stream.push([]);
    stream.push([chunk("c"), chunk("d")]);
    stream.end();
    expect((await Promise.all(reads)).map(({ value }) => value?.id)).toEqual(["a", "b", "c"]);
    expect(await readAll(stream)).toEqual({ ids: ["d"], error: undefined });
    expect(await stream.chunks.next()).toEqual(OVER);
  });

  test("throws what went wrong behind the chunks that came, and once", async () => {
    const stream = start();
    const error = new Error("cut");
    stream.push([chunk("a")]);
    stream.end({ error });
    stream.end();
    expect(await readAll(stream)).toEqual({ ids: ["a"], error });
    expect(await stream.chunks.next()).toEqual(OVER);
  });

  test("tells a waiting reader the end, and what went wrong", async () => {
    const whole = start();
    const reading = readAll(whole);
    whole.end();
    expect(await reading).toEqual({ ids: [], error: undefined });
    const broken = start();
    const waiting = broken.chunks.next();
    const error = new Error("cut");
    broken.end({ error });
    await expect(waiting).rejects.toBe(error);
  });

  test("throws the signal's reason instead of what is unread, and once", async () => {
    const controller = new AbortController();
    const stream = start(controller.signal);
    const reason = new Error("left");
    stream.push([chunk("a"), chunk("b")]);
    stream.end();
    await stream.chunks.next();
    controller.abort(reason);
    await expect(stream.chunks.next()).rejects.toBe(reason);
    expect(await stream.chunks.next()).toEqual(OVER);
  });

  test("asks for a rest when too much is unread, and for more when it is read", async () => {
    const { chunks, calls, push } = start();
    const first = chunks.next();
    expect(push(Array.from({ length: 1_001 }, () => chunk("a")))).toBe(true);
    expect(push([chunk("b")])).toBe(false);
    await first;
    for (let read = 0; read < 500; read++) await chunks.next();
    // Whoever was asked to rest is not taken to work because a little was read.
    expect(push([chunk("c")])).toBe(false);
    for (let read = 0; read < 502; read++) await chunks.next();
    expect(calls).toEqual(["begin"]);
    void chunks.next();
    expect(calls).toEqual(["begin", "resume"]);
    expect(push([chunk("d")])).toBe(true);
  });

  test("hands on what a source pushes while it is asked", async () => {
    const source = { begin: () => void stream.push([chunk("a")]), resume() {}, leave() {} };
    const stream = createChunkStream(source, open);
    await expect(stream.chunks.next()).resolves.toMatchObject({ value: { id: "a" } });
  });

  test("knows since when its consumer has waited", () => {
    const { chunks, push, readWaitingMs } = start();
    expect(readWaitingMs()).toBeUndefined();
    const beforeMs = Math.trunc(performance.now());
    void chunks.next();
    expect(readWaitingMs()).toBeGreaterThanOrEqual(beforeMs);
    expect(readWaitingMs()).toBeLessThanOrEqual(performance.now());
    push([chunk("a")]);
    expect(readWaitingMs()).toBeUndefined();
  });
});

describe("leaving a stream of chunks", () => {
  test("tells the source once, ends a read that waits, and drops what comes later", async () => {
    const { chunks, calls, push, end } = start();
    const waiting = chunks.next();
    await expect(chunks.return()).resolves.toEqual(OVER);
    await expect(waiting).resolves.toEqual(OVER);
    expect(push([chunk("a")])).toBe(true);
    end({ error: new Error("nobody is told") });
    await expect(chunks.next()).resolves.toEqual(OVER);
    await chunks[Symbol.asyncDispose]();
    expect(calls).toEqual(["begin", "leave"]);
  });

  test("before the first read begins nothing", async () => {
    const { chunks, calls } = start();
    await chunks.return();
    await expect(chunks.next()).resolves.toEqual(OVER);
    expect(calls).toEqual([]);
  });

  test("by an error gives that error back", async () => {
    const { chunks, calls } = start();
    void chunks.next();
    const error = new Error("mine");
    await expect(chunks.throw(error)).rejects.toBe(error);
    expect(calls).toEqual(["begin", "leave"]);
  });
});
