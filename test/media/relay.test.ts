import { DatabaseSync } from "node:sqlite";
import { Keyv } from "keyv";
import { describe, expect, test } from "vitest";
import { createLogger } from "../../src/log/log.ts";
import type { ReadPicture, ReferencePicture } from "../../src/media/reference-picture.ts";
import { createRelay, type RelayDeps } from "../../src/media/relay.ts";
import type { AttachmentRef } from "../../src/port/events.ts";
import { createStores } from "../../src/store/keyv.ts";
import { silent } from "../support/log.ts";
import { owner } from "../support/picture-job.ts";

const never = new AbortController().signal;
const LIFETIME_MS = 30 * 60_000;
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
  const { open } = createStores({ redisUrl: undefined, database, log: silent });
  const log = createLogger({ level: "trace", secrets: [], destination: { write: (line) => void lines.push(line) } });
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

describe("createRelay", () => {
  test("gives the picture out again, as often as it is asked for, without reading it a second time", async () => {
    const { publish, open, reads } = setUp();
    const path = await publish(ref, picture, owner);
    for (let times = 0; times < 3; times++) {
      expect(await open(path, never)).toMatchObject({ bytes: Uint8Array.of(1, 2, 3), mimeType: "image/png" });
    }
    expect(reads).toEqual([]);
  });

  test("shows nothing of where the picture is kept in the path", async () => {
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

  test("reads the picture again after a restart, once, also when several ask at the same time", async () => {
    const { publish, restart, reads } = setUp();
    const path = await publish(ref, picture, owner);
    const { open } = restart();
    const opened = await Promise.all([open(path, never), open(path, never), open(path, never)]);
    expect(opened.map((file) => file?.bytes)).toEqual(Array(3).fill(picture.bytes));
    expect(await open(path, never)).toBeDefined();
    expect(reads).toEqual([ref]);
  });

  test("reads a picture again for which there was no room", async () => {
    const { publish, open, reads } = setUp(undefined, { maxBytes: 5 });
    const path = await publish(ref, picture, owner);
    await publish({ ...ref, id: "F124" }, picture, owner);
    expect(await open(path, never)).toBeDefined();
    expect(await open(path, never)).toBeDefined();
    expect(reads).toEqual([ref]);
  });

  test("is over when it is over, whether the bytes are at hand or not", async () => {
    const { publish, open, restart, reads, advance } = setUp();
    const path = await publish(ref, picture, owner);
    advance(LIFETIME_MS - 1);
    expect(await open(path, never)).toBeDefined();
    advance(1_001);
    expect(await open(path, never)).toBeUndefined();
    expect(await restart().open(path, never)).toBeUndefined();
    expect(reads).toEqual([]);
  });

  test("gives nothing for a path that it did not sign, and asks nobody about it", async () => {
    const { publish, open, reads } = setUp();
    const path = await publish(ref, picture, owner);
    for (const wrong of [path.slice(0, -1), `${path}?`, path.replace("v1", "v2"), path.toUpperCase(), "/", ""]) {
      expect(await open(wrong, never)).toBeUndefined();
    }
    expect(reads).toEqual([]);
  });

  test("gives nothing for a picture that is gone, has changed its type, or is not known to the store", async () => {
    const gone = setUp(async () => ({ problem: "is not there any more" }));
    expect(await gone.restart().open(await gone.publish(ref, picture, owner), never)).toBeUndefined();
    const changed = setUp(async () => ({ ...picture, mimeType: "image/gif" }));
    expect(await changed.restart().open(await changed.publish(ref, picture, owner), never)).toBeUndefined();
    const unknown = setUp();
    const path = await unknown.publish(ref, picture, owner);
    await unknown.keyv.clear();
    expect(await unknown.restart().open(path, never)).toBeUndefined();
    expect(unknown.reads).toEqual([]);
  });

  test("asks again for a picture that could not be read the last time", async () => {
    let isThere = false;
    const { publish, restart } = setUp(async () => (isThere ? picture : { problem: "could not be fetched" }));
    const path = await publish(ref, picture, owner);
    const { open } = restart();
    expect(await open(path, never)).toBeUndefined();
    isThere = true;
    expect(await open(path, never)).toBeDefined();
  });

  test("logs that a picture cannot be read, without its path, its address or a token", async () => {
    const failure = new Error("GET https://files.slack.com/F123?token=xoxb-1 failed");
    const { publish, restart, lines } = setUp(() => Promise.reject(failure));
    const path = await publish(ref, picture, owner);
    expect(await restart().open(path, never)).toBeUndefined();
    const [, , , token = ""] = path.split("/");
    expect(lines.join("")).toContain("cannot be read again");
    expect(lines.join("")).not.toMatch(/xoxb|files\.slack|F123/);
    expect(lines.join("")).not.toContain(token);
  });

  test("lets one who waits leave, and the others have the picture", async () => {
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

  test("makes no link that the store does not know of", async () => {
    const { publish } = setUp(undefined, { open: toOpenAway });
    await expect(publish(ref, picture, owner)).rejects.toThrow("The store is away.");
  });
});

describe("erasure", () => {
  test("reaches the links to a file for all people, and the bytes that other processes keep", async () => {
    const { publish, open, erase, restart, keyv } = setUp();
    const paths = [
      await publish(ref, picture, owner),
      await publish(ref, picture, { ...owner, jobId: "j2", authorId: "U2" }),
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

  test("of a job leaves what was made for another one", async () => {
    const { publish, open, erase } = setUp();
    const [mine, others] = [await publish(ref, picture, owner), await publish(ref, picture, { ...owner, jobId: "j2" })];
    await erase([ref], "j1");
    expect(await open(mine, never)).toBeUndefined();
    expect(await open(others, never)).toBeDefined();
  });

  test("of a person reaches all that was made for that person, and nobody else's", async () => {
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

  test("of a file at its platform ends its links too", async () => {
    let isThere = true;
    const { publish, open } = setUp(undefined, { isGone: async () => !isThere });
    const path = await publish(ref, picture, owner);
    expect(await open(path, never)).toBeDefined();
    isThere = false;
    expect(await open(path, never)).toBeUndefined();
  });

  test("is not gone around while the store is away", async () => {
    const { publish, restart, lines } = setUp();
    const path = await publish(ref, picture, owner);
    expect(await restart({ open: toOpenAway }).open(path, never)).toBeUndefined();
    expect(lines.join("")).toContain("a link could not be checked");
    expect(lines.join("")).not.toContain("The store is away.");
  });
});

/** A store that does not answer. */
function toOpenAway(): Keyv {
  const keyv = new Keyv();
  const fail = () => Promise.reject(new Error("The store is away."));
  return Object.assign(keyv, { get: fail, setMany: fail });
}
