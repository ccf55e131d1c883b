import { describe, expect, test } from "vitest";
import { type ReadLimit, readBounded } from "../../src/media/read-bounded.ts";

const never = new AbortController().signal;

const upTo = (maxBytes: number): ReadLimit => ({ maxBytes, share: { hold: () => true } });

async function* chunks(...sizes: number[]): AsyncGenerator<Uint8Array> {
  let next = 0;
  for (const size of sizes) yield Uint8Array.from({ length: size }, () => next++ % 251);
}

/** Yields one byte. Then waits for `stop`, or fails with it. */
async function* stopping(stop: () => Promise<void>): AsyncGenerator<Uint8Array> {
  yield new Uint8Array(1);
  await stop();
}

describe("readBounded", () => {
  test("readBounded returns the bytes in order, whatever the chunks", async () => {
    const expected = Uint8Array.from({ length: 200_001 }, (_, index) => index % 251);
    await expect(readBounded(chunks(1, 65_535, 2, 0, 134_463), upTo(1e6), never)).resolves.toEqual(expected);
  });

  test("readBounded accepts exactly the allowed number of bytes", async () => {
    await expect(readBounded(chunks(60, 40), upTo(100), never)).resolves.toHaveLength(100);
    await expect(readBounded(chunks(60, 41), upTo(100), never)).resolves.toBe("too-large");
  });

  test("readBounded stops if its share has no room for the next bytes", async () => {
    const share = { hold: (sizeBytes: number) => sizeBytes <= 60 };
    await expect(readBounded(chunks(60), { maxBytes: 100, share }, never)).resolves.toHaveLength(60);
    await expect(readBounded(chunks(60, 1), { maxBytes: 100, share }, never)).resolves.toBe("no-room");
  });

  test("readBounded resolves to no bytes for an empty source", async () => {
    await expect(readBounded(chunks(), upTo(100), never)).resolves.toEqual(new Uint8Array());
  });

  test("readBounded stops an endless source at the limit and closes it", async () => {
    let given = 0;
    const closed = Promise.withResolvers<void>();
    async function* endless(): AsyncGenerator<Uint8Array> {
      try {
        for (;;) yield new Uint8Array(++given && 10);
      } finally {
        closed.resolve();
      }
    }
    await expect(readBounded(endless(), upTo(100), never)).resolves.toBe("too-large");
    await closed.promise;
    expect(given).toBe(11);
  });

  test("readBounded rejects with the signal's reason even if the source never answers", async () => {
    const controller = new AbortController();
    const stuck = { [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => {}) }) };
    const reading = readBounded(stuck, upTo(100), controller.signal);
    controller.abort("stopped");
    await expect(reading).rejects.toBe("stopped");
  });

  test("readBounded does not wait for a source that does not return", async () => {
    const controller = new AbortController();
    const reading = readBounded(
      stopping(() => new Promise(() => {})),
      upTo(100),
      controller.signal,
    );
    setImmediate(() => controller.abort("stopped"));
    await expect(reading).rejects.toBe("stopped");
  });

  test("readBounded passes on the error of a source", async () => {
    const failing = stopping(() => Promise.reject(new Error("cut")));
    await expect(readBounded(failing, upTo(100), never)).rejects.toThrow("cut");
  });
});
