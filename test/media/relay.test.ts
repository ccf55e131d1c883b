import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { silent } from "../../lab/support/log.ts";
import { owner } from "../../lab/support/picture-turn.ts";
import { createLogger } from "../../src/log/log.ts";
import type { ReadPicture, ReferencePicture } from "../../src/media/reference-picture.ts";
import { createRelay, type RelayDeps } from "../../src/media/relay.ts";
import type { AttachmentRef } from "../../src/port/events.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { createStores } from "../../src/store/keyv.ts";

const never = new AbortController().signal;
const LIFETIME_MS = 30 * 60_000;
const ref: AttachmentRef = { platform: "slack", id: "F123", name: "cat.png", sizeBytes: 3 };

function toPicture(bytes: Uint8Array): ReferencePicture {
  return { bytes, mimeType: "image/png", originalType: "image/png", isChanged: false };
}

const picture = toPicture(Uint8Array.of(1, 2, 3));

/** A relay over a store that outlives the relay. `restart` returns another relay, as in a new process. */
function setUp(read: ReadPicture = async () => picture, options: Partial<RelayDeps> = {}) {
  let now = 1_000_000;
  const lines: string[] = [];
  const reads: AttachmentRef[] = [];
  const database = new DatabaseSync(":memory:");
  const { open } = createStores({ redisUrl: undefined, database, log: silent }, NO_RIGHT);
  const log = createLogger({
    level: "trace",
    secrets: [],
    tokens: [],
    destination: { write: (line) => void lines.push(line) },
  });
  const start = (changed: Partial<RelayDeps> = {}) =>
    createRelay({
      keys: ["k".repeat(32)],
      open,
      isGone: async () => false,
      read: (ref, owner, signal) => {
        reads.push(ref);
        return read(ref, owner, signal);
      },
      log,
      now: () => now,
      ...options,
      ...changed,
    });
  return { ...start(), restart: start, keyv: open("relay"), reads, lines, advance: (ms: number) => (now += ms) };
}

import type { Entries } from "../../src/store/keyv.ts";
import { openEntries } from "../support/entries.ts";

describe("createRelay", () => {
  test("the relay returns an image as often as requested without reading it again", async () => {
    const { publish, open, reads } = setUp();
    const path = await publish(ref, picture, owner);
    for (let times = 0; times < 3; times++) {
      expect(await open(path, never)).toMatchObject({ bytes: Uint8Array.of(1, 2, 3), mimeType: "image/png" });
    }
    expect(reads).toEqual([]);
  });

  test("a relay path reveals nothing about where the image is stored", async () => {
    const { publish } = setUp();
    const path = await publish(
      { ...ref, id: "https://cdn.example/secret?hm=mark", name: "private.png" },
      picture,
      owner,
    );
    const [, , , token = ""] = path.split("/");
    for (const text of [path, Buffer.from(token, "base64url").toString("latin1")]) {
      expect(text).not.toMatch(/secret|cdn|private|hm=/);
    }
  });

  test("after a restart, concurrent requests read the image again once", async () => {
    const { publish, restart, reads } = setUp();
    const path = await publish(ref, picture, owner);
    const { open } = restart();
    const opened = await Promise.all([open(path, never), open(path, never), open(path, never)]);
    expect(opened.map((file) => file?.bytes)).toEqual(Array(3).fill(picture.bytes));
    expect(await open(path, never)).toBeDefined();
    expect(reads).toEqual([ref]);
  });

  test("the relay reads an image again if there was no room to keep it", async () => {
    const { publish, open, reads } = setUp(undefined, { maxBytes: 5 });
    const path = await publish(ref, picture, owner);
    await publish({ ...ref, id: "F124" }, picture, owner);
    expect(await open(path, never)).toBeDefined();
    expect(await open(path, never)).toBeDefined();
    expect(reads).toEqual([ref]);
  });

  test("a relay link expires, whether or not the bytes are in memory", async () => {
    const { publish, open, restart, reads, advance } = setUp();
    const path = await publish(ref, picture, owner);
    advance(LIFETIME_MS - 1);
    expect(await open(path, never)).toBeDefined();
    advance(1_001);
    expect(await open(path, never)).toBeUndefined();
    expect(await restart().open(path, never)).toBeUndefined();
    expect(reads).toEqual([]);
  });

  test("the relay returns nothing for an image that is deleted, has another type, or is not in the store", async () => {
    const gone = setUp(async () => ({ problem: "no longer exists" }));
    expect(await gone.restart().open(await gone.publish(ref, picture, owner), never)).toBeUndefined();
    const changed = setUp(async () => ({ ...picture, mimeType: "image/gif" }));
    expect(await changed.restart().open(await changed.publish(ref, picture, owner), never)).toBeUndefined();
    const unknown = setUp();
    const path = await unknown.publish(ref, picture, owner);
    await unknown.keyv.clear();
    expect(await unknown.restart().open(path, never)).toBeUndefined();
    expect(unknown.reads).toEqual([]);
  });

  test("the relay reads an image again if the last attempt failed", async () => {
    let isThere = false;
    const { publish, restart } = setUp(async () => (isThere ? picture : { problem: "could not be fetched" }));
    const path = await publish(ref, picture, owner);
    const { open } = restart();
    expect(await open(path, never)).toBeUndefined();
    isThere = true;
    expect(await open(path, never)).toBeDefined();
  });

  test("the relay's log line about an unreadable image contains no path, address or token", async () => {
    const failure = new Error("GET https://files.slack.com/F123?token=xoxb-1 failed");
    const { publish, restart, lines } = setUp(() => Promise.reject(failure));
    const path = await publish(ref, picture, owner);
    expect(await restart().open(path, never)).toBeUndefined();
    const [, , , token = ""] = path.split("/");
    expect(lines.join("")).toContain("could not read a relayed file again");
    expect(lines.join("")).not.toMatch(/xoxb|files\.slack|F123/);
    expect(lines.join("")).not.toContain(token);
  });

  test("one caller can leave while the others still get the image", async () => {
    const reading = Promise.withResolvers<typeof picture>();
    const { publish, restart } = setUp(() => reading.promise);
    const path = await publish(ref, picture, owner);
    const { open } = restart();
    const leaving = new AbortController();
    const left = open(path, leaving.signal);
    const staying = open(path, never);
    leaving.abort(new Error("I left."));
    await expect(left).rejects.toThrow("I left.");
    reading.resolve(picture);
    expect(await staying).toBeDefined();
  });

  test("the relay makes no link if the store fails", async () => {
    const { publish } = setUp(undefined, { open: toOpenAway });
    await expect(publish(ref, picture, owner)).rejects.toThrow("The store is away.");
  });
});

describe("erasing relay links", () => {
  test("erasing a file ends its links for everyone, and drops the bytes in other processes", async () => {
    const { publish, open, erase, restart, keyv } = setUp();
    const paths = [
      await publish(ref, picture, owner),
      await publish(ref, picture, { ...owner, turnId: "j2", authorId: "U2" }),
    ];
    const other = await publish({ ...ref, id: "F124" }, picture, owner);
    const elsewhere = restart();
    for (const path of [...paths, other]) expect(await elsewhere.open(path, never)).toBeDefined();
    await erase([ref]);
    for (const process of [{ open }, elsewhere]) {
      for (const path of paths) expect(await process.open(path, never)).toBeUndefined();
      expect(await process.open(other, never)).toBeDefined();
    }
    await erase([{ ...ref, id: "F124" }]);
    expect(await Array.fromAsync(keyv.iterator?.(undefined) ?? [])).toEqual([]);
  });

  test("erasing a job keeps the links of another job", async () => {
    const { publish, open, erase } = setUp();
    const [mine, others] = [
      await publish(ref, picture, owner),
      await publish(ref, picture, { ...owner, turnId: "j2" }),
    ];
    await erase([ref], "j1");
    expect(await open(mine, never)).toBeUndefined();
    expect(await open(others, never)).toBeDefined();
  });

  test("erasing a person ends all of that person's links, and no one else's", async () => {
    const { publish, open, forget } = setUp();
    const mine = [await publish(ref, picture, owner), await publish({ ...ref, id: "F124" }, picture, owner)];
    const others = [
      await publish(ref, picture, { ...owner, authorId: "U2" }),
      await publish(ref, picture, { ...owner, platform: "discord" }),
    ];
    await forget("slack", "U1");
    for (const path of mine) expect(await open(path, never)).toBeUndefined();
    for (const path of others) expect(await open(path, never)).toBeDefined();
  });

  test("deleting a file on its platform also ends its links", async () => {
    let isThere = true;
    const { publish, open } = setUp(undefined, { isGone: async () => !isThere });
    const path = await publish(ref, picture, owner);
    expect(await open(path, never)).toBeDefined();
    isThere = false;
    expect(await open(path, never)).toBeUndefined();
  });

  test("an erasure is not bypassed while the store is down", async () => {
    const { publish, restart, lines } = setUp();
    const path = await publish(ref, picture, owner);
    expect(await restart({ open: toOpenAway }).open(path, never)).toBeUndefined();
    expect(lines.join("")).toContain("could not check a relay link");
    expect(lines.join("")).not.toContain("The store is away.");
  });
});

function toOpenAway(): Entries {
  const fail = () => Promise.reject(new Error("The store is away."));
  return Object.assign(openEntries("away"), { get: fail, write: fail });
}
