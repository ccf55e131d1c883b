import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { isOnRedis } from "../../lab/support/bot-store.ts";
import { startEngine } from "../../lab/support/engine.ts";
import { action, command, message } from "../../lab/support/events.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { silent } from "../../lab/support/log.ts";
import { noFiles } from "../../lab/support/picture-turn.ts";
import { NEVER } from "../../src/concurrency/deadlines.ts";
import { createHistory } from "../../src/history/history.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { FencedError, NO_RIGHT, withFence } from "../../src/port/right.ts";
import { createStores, type Stores } from "../../src/store/keyv.ts";
import { removePosted, removeStrays, takeBack } from "../../src/turn/posted-answer.ts";
import { newRecord, type TurnRecord } from "../../src/turn/record.ts";
import { createTurnRecords } from "../../src/turn/records.ts";
import { eventually } from "../support/eventually.ts";

/** A turn whose process died while it was posting, and a platform that refuses the first removal. */
async function start() {
  const { open, inTurn } = createStores(
    { redisUrl: undefined, database: new DatabaseSync(":memory:"), log: silent },
    NO_RIGHT,
  );
  const records = createTurnRecords({ open, inTurn, ttlMs: 60_000, files: noFiles, log: silent });
  const history = createHistory({ open, inTurn, ttlMs: 60_000, log: silent, now: Date.now });
  const platform = fakePlatform();
  let refusals = 1;
  platform.setTrouble((call) => (call === "remove" && refusals-- > 0 ? { kind: "rate-limited" } : undefined));
  const question = message("tea?");
  const record = { ...newRecord([question], [question]), attempts: 1, isPosting: true };
  return {
    platform,
    records,
    record,
    deps: { records, history, adapterOf: () => platform.adapter, right: NO_RIGHT, log: silent },
  };
}

test("the bot looks once for a post that may exist, however often the platform refuses to remove it", async () => {
  const { platform, records, record, deps } = await start();
  await records.save(record);
  await expect(takeBack(deps, record)).rejects.toThrow("remove was refused");
  const stored = await records.load(record.id);
  expect(stored).toMatchObject({ isPosting: false, posted: [platform.channel[0]?.id] });
  if (stored !== undefined) await takeBack(deps, stored);
  expect(platform.calls).toEqual(["post", "remove", "remove"]);
  expect(platform.channel).toEqual([]);
});

test("the record of a turn that was erased does not come back while its messages are removed", async () => {
  const { platform, records, record, deps } = await start();
  await expect(removePosted(deps, record)).rejects.toThrow("remove was refused");
  expect(await records.load(record.id)).toBeUndefined();
  await removePosted(deps, record);
  expect(platform.channel).toEqual([]);
});

describe("a post by a frozen process, when another process has answered meanwhile", () => {
  const LOOK_MS = 5;

  /** Two messages in an answer. The process that took over knows the first one. */
  async function leaveBehind(found: Partial<TurnRecord>) {
    const { platform, records, record, deps } = await start();
    platform.setTrouble(() => undefined);
    const sink = platform.adapter.sink(record.reply, NO_RIGHT);
    const draft = { markdown: "Tea", buttons: [], streaming: true };
    const { signal } = new AbortController();
    const posted = [(await sink.post(draft, "n0", signal)).id, (await sink.post(draft, "n1", signal)).id];
    const stored: TurnRecord = { ...record, posted: posted.slice(0, 1), phase: "posted", isPosting: false, ...found };
    await records.save(stored);
    const removing = removeStrays({ ...deps, load: deps.records.load }, { ...record, posted }, LOOK_MS);
    return { platform, records, stored, posted, removing, ids: () => platform.channel.map(({ id }) => id) };
  }

  test("a stray post is removed once the answer has ended: until then it can still be found", async () => {
    const { platform, records, stored, posted, removing, ids } = await leaveBehind({});
    await eventually(() => platform.calls).not.toContain("remove");
    expect(ids()).toEqual(posted);
    await records.save({ ...stored, phase: "final" });
    await removing;
    expect(ids()).toEqual(posted.slice(0, 1));
  });

  test("a stray post is removed during the answer if the other process has posted as many messages", async () => {
    const { posted, removing, ids } = await leaveBehind({ posted: ["test:theirs1", "test:theirs2"] });
    await removing;
    expect(ids().filter((id) => posted.includes(id))).toEqual([]);
  });

  test("a post stays if the other process has found it", async () => {
    const { records, stored, posted, removing, ids } = await leaveBehind({});
    await records.save({ ...stored, posted, phase: "final" });
    await removing;
    expect(ids()).toEqual(posted);
  });

  // Redis itself would refuse this right from the start, because no queue has stored it.
  test.each(["lost", "shutdown", ...(isOnRedis ? [] : ["fenced before the queue knows"])])(
    "a process removes its stray post before its work ends, %s",
    async (reason) => {
      const [question, lost, held] = [message("tea?"), new AbortController(), Promise.withResolvers<void>()];
      const check = async () => {
        if (lost.signal.aborted) throw new FencedError("Another process has taken over this work.");
      };
      const wrapStores = (stores: Stores): Stores => ({
        ...stores,
        open(name) {
          const keyv = stores.open(name);
          const { write } = keyv;
          keyv.write = async (entries, removed) => {
            await check();
            return write(entries, removed);
          };
          return keyv;
        },
      });
      const engine = startEngine({ wrapStores, scripts: [["Tea is a drink."]] });
      engine.setTrouble((call) => (call === "post" ? held.promise : undefined));
      const signal = reason.startsWith("fenced") ? NEVER : lost.signal;
      const right = reason.startsWith("fenced") ? withFence(NO_RIGHT, { key: "lane", value: "mine", check }) : NO_RIGHT;
      const working = engine.worker.work([question], { signal, right }).catch(() => {});
      await eventually(() => engine.calls).toContain("post");
      const record = await engine.records.answerTo(question.messageId);
      if (record !== undefined) await engine.records.save({ ...record, posted: ["test:theirs"], phase: "final" });
      lost.abort(reason);
      held.resolve();
      await working;
      expect(engine.calls).toContain("remove");
      expect(engine.channel).toEqual([]);
    },
  );
});

const LINE = "a line of the long answer\n\n";

/** A truncated answer, and the button press that continues it. */
async function cutOff(text: string, platform = fakePlatform(), rest = "the rest") {
  const engine = startEngine({ platform, scripts: [[text, { finish: "length" }], [rest]] });
  const question = await engine.handle(message("Tell me everything"));
  const before = platform.channel.map(({ draft }) => draft);
  async function goOn(): Promise<void> {
    await engine.handle(action("continue", toTurnId(question.key)));
  }
  return { ...engine, question, before, goOn };
}

describe("a truncated answer that is continued", () => {
  test("a continued answer loses its button and note before the rest starts", async () => {
    const { before, goOn, channel, calls } = await cutOff("The first half");
    expect(before).toMatchObject([{ markdown: expect.stringContaining("Press Continue"), buttons: [{}] }]);
    const made = calls.length;
    await goOn();
    expect(channel.map(({ draft }) => [draft.markdown, draft.buttons])).toEqual([
      ["The first half", []],
      ["the rest", []],
    ]);
    expect(calls.slice(made, made + 2)).toEqual(["edit", "post"]);
  });

  test("a continued answer keeps its whole text, however its messages were split", async () => {
    const words = (shown: string) => shown.replace(/\s+/g, " ").trim();
    for (const extra of [0, 1, 2, 40, 80, 120]) {
      const text = LINE.repeat(14) + "x".repeat(extra);
      const platform = fakePlatform({ maxLength: 200 });
      const { goOn, texts, violations } = await cutOff(text, platform, "REST");
      await goOn();
      expect(words(texts().join(" "))).toBe(words(`${text} REST`));
      expect(violations).toEqual([]);
    }
  });

  test("a continued answer keeps its whole text if more was shown than stored", async () => {
    const words = Array.from({ length: 120 }, (_, index) => `word${index}`).join(" ");
    for (const length of [60, 150, 400]) {
      const platform = fakePlatform({ maxLength: 400 });
      const engine = startEngine({
        platform,
        scripts: [[{ reasoning: "hm ".repeat(length / 3) }, words, { finish: "length" }], ["REST"]],
      });
      await engine.handle(command("model", "--thinking shown"));
      platform.channel.splice(0);
      const question = await engine.handle(message("Tell me everything"));
      expect(engine.texts()[0]).toContain("Thought for");
      await engine.handle(action("continue", toTurnId(question.key)));
      const shown = engine.texts().join(" ");
      expect(words.split(" ").filter((word) => !shown.split(/\s+/).includes(word))).toEqual([]);
      expect(shown.match(/word77\b/g)).toHaveLength(1);
    }
  });

  test("continuing an answer removes a message that held only the closing", async () => {
    const platform = fakePlatform({ maxLength: 200 });
    const text = "word ".repeat(30).trim();
    const { before, goOn, texts } = await cutOff(text, platform);
    expect(before).toHaveLength(2);
    await goOn();
    expect(texts()).toEqual([text, "the rest"]);
  });

  test("a continued answer removes text that the closing had pushed into a separate message", async () => {
    const platform = fakePlatform({ maxLength: 200 });
    const text = `${"word ".repeat(25).trim()}\n\n## A heading`;
    const { before, goOn, texts } = await cutOff(text, platform);
    expect(before[1]?.markdown).toMatch(/^## A heading/);
    await goOn();
    expect(texts()).toEqual([text, "the rest"]);
  });

  test("a continued answer keeps its file and the note about it", async () => {
    const platform = fakePlatform({ maxLength: 200, maxMessages: 2 });
    const { goOn, channel, texts } = await cutOff(LINE.repeat(30), platform);
    await goOn();
    expect(channel.map(({ files }) => files.length)).toEqual([0, 0, 0, 1, 0]);
    expect(texts()[2]).toBe("_The whole answer is in the attached file._");
  });

  test("a continued answer stays unchanged if its text is not stored", async () => {
    const { goOn, history, question, texts } = await cutOff("The first half");
    const [standing] = texts();
    await history.remove(toTurnId(question.key));
    await goOn();
    expect(texts()).toEqual([standing, "the rest"]);
  });

  test("an answer is continued even if the platform rejects the edit", async () => {
    const platform = fakePlatform();
    const { goOn, texts } = await cutOff("The first half", platform);
    platform.setTrouble((call) => (call === "edit" ? { kind: "forbidden" } : undefined));
    await goOn();
    expect(texts()).toEqual([expect.stringMatching(/^The first half/), "the rest"]);
  });
});
