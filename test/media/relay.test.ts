import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import type { AttachmentRef } from "../../src/adapter.ts";
import { createLogger } from "../../src/log.ts";
import type { ReadPicture, ReferencePicture } from "../../src/media/reference-picture.ts";
import { createRelay, type RelayDeps } from "../../src/media/relay.ts";
import { createStores } from "../../src/store/keyv.ts";
import { silent } from "../support/log.ts";

const never = new AbortController().signal;
const LIFETIME_MS = 60_000;
const ref: AttachmentRef = { platform: "slack", id: "F123", name: "cat.png", sizeBytes: 3 };

function toPicture(bytes: Uint8Array): ReferencePicture {
  return { bytes, mimeType: "image/png", originalType: "image/png", isChanged: false };
}

const picture = toPicture(Uint8Array.of(1, 2, 3));

/** A relay over a store that outlives it; `restart` makes another one, as a process that has just begun has it. */
function setUp(read: ReadPicture = async () => picture, options: Partial<RelayDeps> = {}) {
  let now = 1_000_000;
  const lines: string[] = [];
  const reads: AttachmentRef[] = [];
  const database = new DatabaseSync(":memory:");
  const keyv = createStores({ redisUrl: undefined, database, log: silent }).open("relay");
  const log = createLogger({ level: "trace", secrets: [], destination: { write: (line) => void lines.push(line) } });
  const start = () =>
    createRelay({
      keys: ["k".repeat(32)],
      keyv,
      read: (ref, signal) => {
        reads.push(ref);
        return read(ref, signal);
      },
      log,
      now: () => now,
      lifetimeMs: LIFETIME_MS,
      ...options,
    });
  return { ...start(), restart: start, keyv, reads, lines, advance: (ms: number) => (now += ms) };
}

describe("createRelay", () => {
  test("gives the picture out again, as often as it is asked for, without reading it a second time", async () => {
    const { publish, open, reads } = setUp();
    const path = await publish(ref, picture);
    for (let times = 0; times < 3; times++) {
      expect(await open(path, never)).toMatchObject({ bytes: Uint8Array.of(1, 2, 3), mimeType: "image/png" });
    }
    expect(reads).toEqual([]);
  });

  test("shows nothing of where the picture is kept in the path", async () => {
    const { publish } = setUp();
    const path = await publish({ ...ref, id: "https://cdn.example/secret?hm=mark", name: "private.png" }, picture);
    const [, , , token = ""] = path.split("/");
    for (const text of [path, Buffer.from(token, "base64url").toString("latin1")]) {
      expect(text).not.toMatch(/secret|cdn|private|hm=/);
    }
  });

  test("reads the picture again after a restart, once, also when several ask at the same time", async () => {
    const { publish, restart, reads } = setUp();
    const path = await publish(ref, picture);
    const { open } = restart();
    const opened = await Promise.all([open(path, never), open(path, never), open(path, never)]);
    expect(opened.map((file) => file?.bytes)).toEqual(Array(3).fill(picture.bytes));
    expect(await open(path, never)).toBeDefined();
    expect(reads).toEqual([ref]);
  });

  test("reads a picture again for which there was no room", async () => {
    const { publish, open, reads } = setUp(undefined, { maxBytes: 5 });
    const path = await publish(ref, picture);
    await publish({ ...ref, id: "F124" }, picture);
    expect(await open(path, never)).toBeDefined();
    expect(await open(path, never)).toBeDefined();
    expect(reads).toEqual([ref]);
  });

  test("is over when it is over, whether the bytes are at hand or not", async () => {
    const { publish, open, restart, reads, advance } = setUp();
    const path = await publish(ref, picture);
    advance(LIFETIME_MS - 1);
    expect(await open(path, never)).toBeDefined();
    advance(1_001);
    expect(await open(path, never)).toBeUndefined();
    expect(await restart().open(path, never)).toBeUndefined();
    expect(reads).toEqual([]);
  });

  test("gives nothing for a path that it did not sign, and asks nobody about it", async () => {
    const { publish, open, reads } = setUp();
    const path = await publish(ref, picture);
    for (const wrong of [path.slice(0, -1), `${path}?`, path.replace("v1", "v2"), path.toUpperCase(), "/", ""]) {
      expect(await open(wrong, never)).toBeUndefined();
    }
    expect(reads).toEqual([]);
  });

  test("gives nothing for a picture that is gone, has changed its type, or is not known to the store", async () => {
    const gone = setUp(async () => ({ problem: "is not there any more" }));
    expect(await gone.restart().open(await gone.publish(ref, picture), never)).toBeUndefined();
    const changed = setUp(async () => ({ ...picture, mimeType: "image/gif" }));
    expect(await changed.restart().open(await changed.publish(ref, picture), never)).toBeUndefined();
    const unknown = setUp();
    const path = await unknown.publish(ref, picture);
    await unknown.keyv.clear();
    expect(await unknown.restart().open(path, never)).toBeUndefined();
    expect(unknown.reads).toEqual([]);
  });

  test("asks again for a picture that could not be read the last time", async () => {
    let isThere = false;
    const { publish, restart } = setUp(async () => (isThere ? picture : { problem: "could not be fetched" }));
    const path = await publish(ref, picture);
    const { open } = restart();
    expect(await open(path, never)).toBeUndefined();
    isThere = true;
    expect(await open(path, never)).toBeDefined();
  });

  test("logs that a picture cannot be read, without its path, its address or a token", async () => {
    const failure = new Error("GET https://files.slack.com/F123?token=xoxb-1 failed");
    const { publish, restart, lines } = setUp(() => Promise.reject(failure));
    const path = await publish(ref, picture);
    expect(await restart().open(path, never)).toBeUndefined();
    const [, , , token = ""] = path.split("/");
    expect(lines.join("")).toContain("cannot be read again");
    expect(lines.join("")).not.toMatch(/xoxb|files\.slack|F123/);
    expect(lines.join("")).not.toContain(token);
  });

  test("lets one who waits leave, and the others have the picture", async () => {
    const reading = Promise.withResolvers<typeof picture>();
    const { publish, restart } = setUp(() => reading.promise);
    const path = await publish(ref, picture);
    const { open } = restart();
    const leaving = new AbortController();
    const left = open(path, leaving.signal);
    const staying = open(path, never);
    leaving.abort(new Error("I left."));
    await expect(left).rejects.toThrow("I left.");
    reading.resolve(picture);
    expect(await staying).toBeDefined();
  });

  test("makes no link that the store does not know of", async () => {
    const { publish, keyv } = setUp();
    keyv.set = () => Promise.reject(new Error("The store is away."));
    await expect(publish(ref, picture)).rejects.toThrow("The store is away.");
  });
});
