import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { recordingLog, silent } from "../../lab/support/log.ts";
import { createOpenCopy, createPictureCopies, type PictureCopiesOptions } from "../../src/media/picture-copies.ts";
import type { AttachmentRef } from "../../src/port/events.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { createStores } from "../../src/store/keyv.ts";

const { signal } = new AbortController();
const ada = { turnId: "job", platform: "test", authorId: "ada" };
const ben = { turnId: "other", platform: "test", authorId: "ben" };
/** Larger than one stored value. */
const LARGE = 1_200_000;

function fleeting(id: string): AttachmentRef {
  return { platform: "test", id, name: `${id}.png`, sizeBytes: 1, isFleeting: true };
}

function start(given: Partial<PictureCopiesOptions> & { sizeBytes?: number } = {}) {
  const { sizeBytes = 3, ...options } = given;
  const { open, inTurn } = createStores(
    { redisUrl: undefined, database: new DatabaseSync(":memory:"), log: silent },
    NO_RIGHT,
  );
  const { log, lines } = recordingLog();
  const reads: string[] = [];
  const bytes = Buffer.alloc(sizeBytes, "picture");
  const copies = createPictureCopies({
    open,
    inTurn,
    ttlMs: 60_000,
    async read({ id }) {
      reads.push(id);
      if (id === "broken") return { problem: "is damaged" };
      return { bytes, mimeType: "image/png", originalType: "image/png", isChanged: false };
    },
    log,
    ...options,
  });
  const openCopy = createOpenCopy(open);
  const bytesOf = async (id: string) => {
    const source = await openCopy(fleeting(id));
    return source && Buffer.concat(await Array.fromAsync(source));
  };
  const left = async () => (await Array.fromAsync(open("copies").iterator?.(undefined) ?? [])).length;
  return { copies, reads, bytes, bytesOf, left, lines };
}

describe("copies of images", () => {
  test("files that expire are copied once and can be opened like the originals", async () => {
    const { copies, reads, bytes, bytesOf } = start({ sizeBytes: LARGE });
    const stays: AttachmentRef = { platform: "test", id: "stays", name: "s.png", sizeBytes: 1 };
    await Promise.all([copies.keep([fleeting("a"), stays], ada, signal), copies.keep([fleeting("a")], ben, signal)]);
    expect(reads).toEqual(["a"]);
    expect((await bytesOf("a"))?.equals(bytes)).toBe(true);
    expect(await bytesOf("stays")).toBeUndefined();
  });

  test("unreadable files, and files without room, are not copied", async () => {
    const { copies, bytesOf, lines } = start({ maxJobBytes: 7, maxTotalBytes: 10 });
    await copies.keep(["broken", "a", "b", "c"].map(fleeting), ada, signal);
    expect([await bytesOf("broken"), await bytesOf("c")]).toEqual([undefined, undefined]);
    expect(await bytesOf("b")).toBeDefined();
    await copies.keep(["d", "e"].map(fleeting), ben, signal);
    expect([await bytesOf("d"), await bytesOf("e")].filter(Boolean)).toHaveLength(1);
    expect(lines.map(({ msg }) => msg)).toEqual(Array(2).fill("did not copy a reference image: no room left"));
    await copies.forget("test", "ada");
    await copies.keep([fleeting("f")], ben, signal);
    expect(await bytesOf("f")).toBeDefined();
  });

  test("copies are erased with the job that they were made for, and with no other job", async () => {
    const { copies, bytesOf, left } = start({ sizeBytes: LARGE });
    await copies.keep([fleeting("a")], ada, signal);
    await copies.erase([fleeting("a")], "other");
    expect(await bytesOf("a")).toBeDefined();
    await copies.erase([fleeting("a"), fleeting("unknown")], "job");
    expect(await left()).toBe(0);
  });

  test("a person's copies are erased with the person, and others' copies stay", async () => {
    const { copies, bytesOf, left } = start({ sizeBytes: LARGE });
    await copies.keep([fleeting("a"), fleeting("b")], ada, signal);
    await copies.keep([fleeting("c")], ben, signal);
    await copies.forget("test", "ada");
    expect([await bytesOf("a"), await bytesOf("b")]).toEqual([undefined, undefined]);
    expect(await bytesOf("c")).toBeDefined();
    await copies.forget("test", "ben");
    expect(await left()).toBe(0);
  });

  test("copying delays no job while the store is down, and stops with the job", async () => {
    const database = new DatabaseSync(":memory:");
    const { open, inTurn } = createStores({ redisUrl: undefined, database, log: silent }, NO_RIGHT);
    const { copies, lines } = start({ open, inTurn });
    database.close();
    await copies.keep([fleeting("a")], ada, signal);
    expect(lines.map(({ msg }) => msg)).toEqual(["could not copy a reference image"]);
    const aborted = AbortSignal.abort("shutdown");
    const read = async () => Promise.reject(new Error("cut"));
    await expect(start({ read }).copies.keep([fleeting("a")], ada, aborted)).rejects.toBe("shutdown");
  });
});
