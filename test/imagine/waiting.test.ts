import { describe, expect, test } from "vitest";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { silent } from "../../lab/support/log.ts";
import { pictureTurn } from "../../lab/support/picture-turn.ts";
import { createPictureLine, createWaitingMessages } from "../../src/imagine/waiting.ts";
import { NO_RIGHT, type Right } from "../../src/port/right.ts";
import type { PictureTurn } from "../../src/turn/record.ts";

/** Several processes with one store and one platform. */
function start() {
  const platform = fakePlatform();
  const known = new Map<string, PictureTurn>();
  const put = (turn: PictureTurn) => void known.set(turn.id, structuredClone(turn));
  const records = {
    loadPicture: async (id: string) => known.get(id),
    async updatePicture(id: string, update: (stored: PictureTurn | undefined) => PictureTurn | undefined) {
      const updated = update(known.get(id));
      if (updated !== undefined) put(updated);
      return updated;
    },
    readPictures: async () => [...known.values()],
    async erasePictures() {
      const erased = [...known.values()];
      known.clear();
      return erased;
    },
    erasePicture: async ({ id }: PictureTurn) => void known.delete(id),
  };
  const { sink } = platform;
  const rights: Right[] = [];
  const open = () =>
    createWaitingMessages({
      records,
      adapterOf: () => ({ sink: (_, right) => (rights.push(right), sink) }),
      sinkOf: () => sink,
      right: NO_RIGHT,
      line: createPictureLine(),
      log: silent,
    });
  const fresh = pictureTurn({ parts: [] });
  const messages = open();
  async function announce(by = messages): Promise<void> {
    by.announce(fresh);
    await by.announced("job");
  }
  return { ...platform, rights, known, put, open, messages, announce, fresh };
}

describe("a waiting image turn", () => {
  test("a waiting image turn says that it waits in its first message, which its record names", async () => {
    const { announce, channel, texts, known } = start();
    await announce();
    expect(texts()).toEqual(["Waiting for other images to finish."]);
    expect(channel[0]?.nonce).toBe("job:0");
    expect(channel[0]?.draft.buttons).toEqual([{ action: "stop", turnId: "job.0", label: "Stop" }]);
    expect(known.get("job")).toMatchObject({ posted: [channel[0]?.id], isPosting: false, parts: [] });
  });

  test.each([
    ["has ended", { phase: "final" as const }],
    ["has another message", { posted: ["test:other"] }],
  ])("a waiting image turn leaves no message behind if another process runs it meanwhile and %s", async (_, given) => {
    const { announce, put, sink, texts } = start();
    const post = sink.post.bind(sink);
    sink.post = async (...args) => {
      put(pictureTurn(given));
      return post(...args);
    };
    await announce();
    expect(texts()).toEqual([]);
  });

  test("a waiting image turn keeps its message if another process continues it", async () => {
    const { announce, put, sink, texts } = start();
    const post = sink.post.bind(sink);
    sink.post = async (...args) => {
      const posted = await post(...args);
      put(pictureTurn({ posted: [posted.id] }));
      return posted;
    };
    await announce();
    expect(texts()).toHaveLength(1);
  });

  test("a waiting image turn posts no second message if a process started it and died", async () => {
    const { announce, put, texts } = start();
    put(pictureTurn({ posted: ["test:first"] }));
    await announce();
    expect(texts()).toEqual([]);
  });

  test("a waiting image turn says that it waits only once, even if the first process has died", async () => {
    const { announce, open, put, channel, rights, sink, fresh } = start();
    await announce();
    const [first] = channel;
    // The process died before it recorded the message.
    put({ ...fresh, isPosting: true });
    const post = sink.post.bind(sink);
    // A resumed turn looks for an earlier process's posts.
    sink.post = async (...args) => (rights.at(-1)?.isResumed && first ? { id: first.id } : post(...args));
    await announce(open());
    expect(channel).toHaveLength(1);
    put({ ...fresh, isPosting: true });
    await open().dismiss("job");
    expect(channel).toHaveLength(0);
  });

  test("a waiting image turn removes its message and its record if it does not start", async () => {
    const { announce, messages, texts, known } = start();
    await announce();
    await messages.dismiss("job");
    expect([texts(), known.size]).toEqual([[], 0]);
  });

  test.each(["dismissAll", "erase"] as const)(
    "a waiting image turn removes its message with its request: %s",
    async (way) => {
      const { announce, messages, texts, known, put } = start();
      await announce();
      put(pictureTurn({ id: "begun", posted: ["test:other"] }));
      const owner = { platform: "test", id: "ada" };
      await (way === "erase" ? messages.erase({ owner }) : messages.dismissAll(owner));
      expect(texts()).toEqual([]);
      expect([...known.keys()]).toEqual(way === "erase" ? [] : ["begun"]);
    },
  );

  test("a waiting image turn leaves no message behind if it is erased during the post", async () => {
    const { announce, known, sink, texts } = start();
    const post = sink.post.bind(sink);
    sink.post = async (...args) => {
      known.clear();
      return post(...args);
    };
    await announce();
    expect(texts()).toEqual([]);
  });

  test("a waiting image turn that could not post its message continues without the message", async () => {
    const { announce, messages, setTrouble, texts } = start();
    setTrouble(() => ({ kind: "forbidden" }));
    await announce();
    await messages.dismiss("job");
    expect(texts()).toEqual([]);
  });
});
