import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { isOnRedis } from "../../lab/support/bot-store.ts";
import { acceptElsewhere, startEngine } from "../../lab/support/engine.ts";
import { action, deleted, edited, message } from "../../lab/support/events.ts";
import { type Step as Script } from "../../lab/support/fake-gateway.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import type { Delta } from "../../src/gateway/chunks.ts";
import { createLogger } from "../../src/log/log.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import type { Step } from "../../src/port/sink.ts";
import type { Stores } from "../../src/store/keyv.ts";
import { StoreError } from "../../src/store/outage.ts";
import type { TurnRecord } from "../../src/turn/record.ts";
import { TURNS } from "../../src/turn/records.ts";
import { json, startFaultServer } from "../support/fault-server.ts";
import { connect } from "../support/gateway-client.ts";
import { toCall, toTool } from "../support/tool-calls.ts";

/** A fence that always holds. */
const LANE = { key: "lane", value: "first", check: async () => {} };

/** Stores that reject this many reads of keys that contain these words, in one namespace. */
function awayFor(namespace: string, words: string, outage: { looks: number }) {
  return (stores: Stores): Stores => ({
    ...stores,
    open(name) {
      const keyv = stores.open(name);
      if (name !== namespace) return keyv;
      const get = keyv.get.bind(keyv);
      return Object.assign(keyv, {
        get(key: string) {
          if (key.includes(words) && outage.looks-- > 0) throw new StoreError("away");
          return get(key);
        },
      });
    },
  });
}

type Entries = Parameters<ReturnType<Stores["open"]>["write"]>[0];

/** Stores that reject this many of the writes for which `isMeant` returns true. */
function refusing(isMeant: (entries: Entries) => boolean, refusal: { writes: number }) {
  return (stores: Stores): Stores => ({
    ...stores,
    open(name) {
      const keyv = stores.open(name);
      const { write } = keyv;
      keyv.write = async (entries, removed) => {
        if (isMeant(entries) && refusal.writes-- > 0) throw new Error("The store is loading.");
        return write(entries, removed);
      };
      return keyv;
    },
  });
}

describe.skipIf(isOnRedis)("an answer that restarts because of an edit at its very end", () => {
  test("an answer resumes if the process died in a restart after an edit", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const never = new Promise(() => {});
    const first = startEngine({ database, platform, scripts: [["About tea."], ["About", never]] });
    const writing = Promise.withResolvers<void>();
    first.setTrouble((call) => (call === "post" ? writing.promise : undefined));
    const question = message("tea?");
    await first.accept(question);
    while (!first.calls.includes("post") || first.openStreams() > 0) await new Promise(setImmediate);
    await first.accept(edited(question, "coffee?"));
    first.setTrouble(() => undefined);
    writing.resolve();
    while (first.requests.length < 2) await new Promise(setImmediate);
    // The process "dies" here: the test does not close anything of `first`, and its model never answers.

    const second = startEngine({ database, platform, scripts: [["About coffee."]] });
    await second.idle();
    expect(platform.texts()).toEqual(["About coffee."]);
    expect(second.requests).toHaveLength(1);
  });
});

const look = toTool("look", async () => "rain");
const LOOK = toCall("look");

describe.skipIf(isOnRedis)("an answer whose process died", () => {
  const BEGINNING = "Tea is a drink that is made of leaves and hot water. It was first drunk in China";
  const LAST_WORDS = "It was first drunk in China";
  /** Enough new text for the turn's record to contain it. */
  const LONG = `${"Tea is good. ".repeat(40)}${BEGINNING}`;
  /** Three messages. */
  const WHOLE = "Tea is good. ".repeat(400).trim();
  const never = new Promise<never>(() => {});

  /** The process "dies" while this is visible. Nothing of it is closed, and its model sends nothing more. */
  async function dieIn({ before, beginning = BEGINNING }: { before?: Array<Delta | string>; beginning?: string } = {}) {
    const [database, platform, question] = [new DatabaseSync(":memory:"), fakePlatform(), message("tea?")];
    const scripts = [...(before === undefined ? [] : [before]), [beginning, never]];
    const first = startEngine({ database, platform, tools: [look], scripts });
    await first.accept(question);
    await first.until(() => platform.texts().some((text) => text.includes(beginning)));
    return { database, platform, question, first };
  }

  test("a resumed answer continues from its last words, as one answer", async () => {
    const { database, platform } = await dieIn();
    const second = startEngine({ database, platform, scripts: [[LAST_WORDS, ", where it grows."]] });
    await second.idle();
    expect(platform.texts()).toEqual([`${BEGINNING}, where it grows.`]);
    expect(second.requests).toHaveLength(1);
    const { entries } = await second.history.read("test:a", { maxEntries: 10 });
    expect(entries.at(-1)?.messages).toEqual([{ role: "assistant", content: `${BEGINNING}, where it grows.` }]);
  });

  test("a resumed answer restarts if the model does not continue it", async () => {
    const { database, platform } = await dieIn();
    const scripts = [["As I said before, tea is nice."], ["Tea is a drink."]];
    const second = startEngine({ database, platform, scripts });
    await second.idle();
    expect(platform.texts()).toEqual(["Tea is a drink."]);
    expect(second.requests.map(({ messages }) => messages.at(-1)?.content === "tea?")).toEqual([false, true]);
  });

  test.each([
    ["keeps the pages that were cited before if it continues", [["Tea is", " good[1]."]], /Sources/],
    ["drops the pages that were cited before if it restarts", [["Leaves[1]."]], /^Leaves\[1\]\.$/],
  ])("a resumed answer %s", async (_, scripts, shown) => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const sources = [{ url: "https://a.example/", title: "A", marks: [1] }];
    const first = startEngine({ database, platform, scripts: [[{ sources }, "Tea is", never]] });
    await first.accept(message("tea?"));
    await first.until(() => platform.texts().includes("Tea is"));
    await startEngine({ database, platform, scripts }).idle();
    expect(platform.texts()).toEqual([expect.stringMatching(shown)]);
  });

  test("a resumed answer keeps the shown text if the bot can no longer ask the model", async () => {
    const { database, platform } = await dieIn();
    await startEngine({ database, platform, scripts: [[new Error("away")]] }).idle();
    expect(platform.texts()).toEqual([expect.stringMatching(new RegExp(`^${BEGINNING}\n\n_Something went wrong`))]);
  });

  test.each([
    ["however short it is", { beginning: "Tea is" }, /^Tea is\n\n_`Ada` stopped this answer/],
    [
      "also behind a tool",
      { before: ["I look.", LOOK], beginning: LONG },
      /^I look\.\n\n.*in China\n\n_`Ada` stopped this answer/,
    ],
  ])("a stopped answer keeps the shown text, %s", async (_, how, shown) => {
    const { database, platform, question } = await dieIn(how);
    await acceptElsewhere(database, action("stop", toTurnId(question.key)));
    const second = startEngine({ database, platform, tools: [look], scripts: [["Tea is a drink."]] });
    await second.idle();
    expect(platform.texts()).toEqual([expect.stringMatching(shown)]);
  });

  test("a resumed answer keeps the shown text if a person stops the answer before it has caught up", async () => {
    const { database, platform, question } = await dieIn({ before: ["I look.", LOOK], beginning: LONG });
    const second = startEngine({ database, platform, tools: [look], scripts: [["Well."], ["Tea is a", never]] });
    while (second.requests.length < 2) await new Promise(setImmediate);
    await second.handle(action("stop", toTurnId(question.key)));
    expect(platform.texts()).toEqual([expect.stringMatching(/^I look\.\n\n.*in China\n\n_`Ada` stopped this answer/)]);
    const { entries } = await second.history.read("test:a", { maxEntries: 10 });
    expect(entries.at(-1)?.messages.map(({ content }) => content)).toEqual(["I look.", "rain", LONG]);
  });

  test.each<[string, Script[], Script[], RegExp]>([
    ["it was stopped", [never], [new Error("away")], /^Tea is a drink\n\n_`Ada` stopped this answer/],
    ["the model failed", [new Error("away")], [new Error("away")], /^Tea is a drink\n\n_Something went wrong/],
    ["it hit the limit", [{ finish: "length" }], ["Tea is a drink", ", mostly."], /^Tea is a drink, mostly\.$/],
    ["it was complete", [], [new Error("away")], /^Tea is a drink$/],
  ])("an answer keeps its last words if its process died just after their end: %s", async (_, how, again, shown) => {
    const [database, platform, question] = [new DatabaseSync(":memory:"), fakePlatform(), message("tea?")];
    const more = Promise.withResolvers<void>();
    const first = startEngine({ database, platform, scripts: [["Tea is", more.promise, " a drink", ...how]] });
    await first.accept(question);
    await first.until(() => platform.texts().includes("Tea is"));
    const ended = Promise.withResolvers<void>();
    const { edit } = platform.sink;
    platform.sink.edit = async (...call) => {
      const receipt = await edit(...call);
      if (call[1].streaming) return receipt;
      ended.resolve();
      return never;
    };
    more.resolve();
    await first.until(() => platform.texts().some((text) => text.includes("a drink")));
    if (how.includes(never)) await first.accept(action("stop", toTurnId(question.key)));
    await ended.promise;
    // The process "dies" here.
    platform.sink.edit = edit;
    await startEngine({ database, platform, scripts: [again] }).idle();
    expect(platform.texts()).toEqual([expect.stringMatching(shown)]);
  });

  test.each([
    ["waits for its turn's record if another process takes it over", 3, { fences: [LANE], isResumed: true }],
    ["shows no less than people have read if the store is briefly slow", 1, NO_RIGHT],
  ])("a resumed answer %s, and continues", async (_, looks, right) => {
    const { database, platform, question } = await dieIn();
    const outage = { looks };
    const wrapStores = awayFor(TURNS, toTurnId(question.key), outage);
    const scripts = [[LAST_WORDS, ", where it grows."]];
    await startEngine({ database, platform, wrapStores, scripts, right }).idle();
    expect(platform.texts()).toEqual([`${BEGINNING}, where it grows.`]);
    expect(outage.looks).toBeLessThanOrEqual(0);
  });

  test("a shutdown hands over an answer with all text that the model has written", async () => {
    const [database, platform, question] = [new DatabaseSync(":memory:"), fakePlatform(), message("tea?")];
    const right = { fences: [LANE], isResumed: false };
    const more = Promise.withResolvers<void>();
    const scripts = [[BEGINNING, more.promise, ", where it grows", never]];
    const first = startEngine({ database, platform, scripts, right });
    await first.accept(question);
    await first.until(() => platform.texts().some((text) => text.includes(BEGINNING)));
    more.resolve();
    await first.until(() => platform.texts().some((text) => text.includes("where it grows")));
    const said = `${BEGINNING}, where it grows`;
    await first.queue.close(0);
    expect(await first.records.load(toTurnId(question.key))).toMatchObject({ shownText: said, seen: said.length });
  });

  test("an answer is removed if its question was deleted meanwhile, even without a record of its start", async () => {
    const [database, platform, question] = [new DatabaseSync(":memory:"), fakePlatform(), message("tea?")];
    const wrapStores = refusing(() => true, { writes: Number.POSITIVE_INFINITY });
    const first = startEngine({ database, platform, wrapStores, scripts: [[BEGINNING, never]] });
    await first.accept(question);
    await first.until(() => platform.texts().some((text) => text.includes(BEGINNING)));
    await acceptElsewhere(database, deleted(question));
    const right = { fences: [LANE], isResumed: true };
    await startEngine({ database, platform, scripts: [], right }).idle();
    expect(platform.texts()).toEqual([]);
  });

  test("an answer is removed with its question even if the process died before it knew the id of the answer's message", async () => {
    const [database, platform, question] = [new DatabaseSync(":memory:"), fakePlatform(), message("tea?")];
    const first = startEngine({ database, platform, scripts: [[BEGINNING, never]] });
    let posts = 0;
    const diedIn = Promise.withResolvers<void>();
    platform.setTrouble((call) => {
      if (call !== "post") return undefined;
      posts += 1;
      if (posts === 1) return { kind: "unavailable", written: true };
      diedIn.resolve();
      return never;
    });
    await first.accept(question);
    await diedIn.promise;
    expect(platform.texts()).toEqual([expect.stringContaining(BEGINNING)]);
    platform.setTrouble(() => undefined);
    await acceptElsewhere(database, deleted(question));
    await startEngine({ database, platform, scripts: [] }).idle();
    expect(platform.texts()).toEqual([]);
  });

  test("a resumed answer restarts if its question was edited meanwhile", async () => {
    const { database, platform, question } = await dieIn();
    await acceptElsewhere(database, edited(question, "coffee?"));
    const second = startEngine({ database, platform, scripts: [["Coffee is another drink."]] });
    await second.idle();
    expect(platform.texts()).toEqual(["Coffee is another drink."]);
    expect(second.requests.map(({ messages }) => messages.at(-1)?.content)).toEqual(["coffee?"]);
  });

  test("a resumed answer continues if another message was posted and deleted meanwhile", async () => {
    const { database, platform } = await dieIn();
    const next = message("coffee?");
    for (const event of [next, deleted(next)]) await acceptElsewhere(database, event);
    const second = startEngine({ database, platform, scripts: [[LAST_WORDS, ", where it grows."]] });
    await second.idle();
    expect(platform.texts()).toEqual([`${BEGINNING}, where it grows.`]);
  });

  test("a resumed answer continues after the tool that it used and keeps the tool's result", async () => {
    const { database, platform } = await dieIn({ before: [LOOK] });
    const second = startEngine({ database, platform, tools: [look], scripts: [[LAST_WORDS, ", where it grows."]] });
    await second.idle();
    expect(platform.texts()).toEqual([`${BEGINNING}, where it grows.`]);
    expect(second.requests.map(({ messages }) => messages.slice(1, 5).map(({ content }) => content))).toEqual([
      ["tea?", "", "rain", BEGINNING],
    ]);
  });

  test("a resumed answer continues after the tool that it called after its text, not after the text", async () => {
    const TEXT = "Tea is a drink made of leaves and hot water, first had in China too.";
    const [database, platform, called] = [new DatabaseSync(":memory:"), fakePlatform(), Promise.withResolvers<void>()];
    const stuck = { ...look, acts: true, run: () => (called.resolve(), new Promise<string>(() => {})) };
    const question = message("tea?");
    const first = startEngine({ database, platform, tools: [stuck], scripts: [[TEXT, LOOK]] });
    await first.accept(question);
    await called.promise;
    await first.until(() => platform.texts().some((text) => text.includes(TEXT)));
    const record = await first.records.load(toTurnId(question.key));
    // The state if only the text before the call was visible.
    if (record !== undefined) await first.records.save({ ...record, shownText: TEXT });
    const second = startEngine({ database, platform, tools: [stuck], scripts: [["I cannot say."]] });
    await second.idle();
    expect(second.requests).toHaveLength(1);
    expect(second.requests[0]?.messages.slice(1)).toMatchObject([
      { role: "user", content: "tea?" },
      { role: "assistant", content: TEXT },
      { role: "tool", content: expect.stringMatching(/^It is unknown whether look was done/) },
    ]);
    expect(platform.texts()[0]).toMatch(new RegExp(`^${TEXT}\n\nI cannot say\\.`));
  });

  function stopAtPost({ setTrouble }: ReturnType<typeof startEngine>, number: number): Promise<void> {
    const reached = Promise.withResolvers<void>();
    let posts = 0;
    setTrouble((call) => {
      if (call === "post") posts += 1;
      if (posts < number) return undefined;
      reached.resolve();
      return never;
    });
    return reached.promise;
  }

  /** The process "dies" after the end of the model's text, when only the first message is posted. */
  async function dieInPosting() {
    const [database, platform, question] = [new DatabaseSync(":memory:"), fakePlatform(), message("tea?")];
    const first = startEngine({ database, platform, scripts: [[WHOLE]] });
    const stopped = stopAtPost(first, 2);
    await first.accept(question);
    await stopped;
    first.setTrouble(() => undefined);
    return { database, platform, question };
  }

  test("a resumed answer is shown to its end without asking the model if the model had finished", async () => {
    const { database, platform } = await dieInPosting();
    const second = startEngine({ database, platform, scripts: [] });
    await second.idle();
    expect(platform.texts().join(" ")).toBe(WHOLE);
    expect(second.requests).toEqual([]);
    const { entries } = await second.history.read("test:a", { maxEntries: 10 });
    expect(entries.at(-1)?.messages).toEqual([{ role: "assistant", content: WHOLE }]);
  });

  test("the bot does not give up an answer if processes died only while they showed a finished text", async () => {
    const { database, platform } = await dieInPosting();
    database.exec("UPDATE queue_event SET begun = 6");
    await startEngine({ database, platform, scripts: [] }).idle();
    expect(platform.texts().join(" ")).toBe(WHOLE);
  });

  test("the bot gives up an answer if processes died before the model had finished", async () => {
    const { database, platform } = await dieIn();
    database.exec("UPDATE queue_event SET begun = 6");
    await startEngine({ database, platform, scripts: [] }).idle();
    expect(platform.texts()).toEqual([expect.stringMatching(new RegExp(`^${BEGINNING}\n\n_I tried several times`))]);
  });

  test("each posted message counts as progress of a resumed answer, even without new text", async () => {
    const { database, platform } = await dieInPosting();
    database.exec("UPDATE queue_event SET begun = 4");
    const second = startEngine({ database, platform, scripts: [] });
    await stopAtPost(second, 2);
    expect(database.prepare("SELECT begun FROM queue_event").all()).toEqual([{ begun: 0 }]);
  });

  test("an ended answer leaves no text in its turn's record", async () => {
    const { first, database, platform, question } = await dieIn();
    const id = toTurnId(question.key);
    expect(await first.records.load(id)).toMatchObject({ shownText: BEGINNING });
    const second = startEngine({ database, platform, scripts: [[LAST_WORDS, "."]] });
    await second.idle();
    expect(await second.records.load(id)).not.toHaveProperty("shownText");
  });
});

describe("an attempt at a turn", () => {
  test("an attempt waits for a question that only the store has, and does not fail", async () => {
    const question = message("Hello");
    const outage = { looks: 0 };
    const wrapStores = awayFor("history", toTurnId(question.key), outage);
    const { handle, texts } = startEngine({ wrapStores, scripts: [["One."], ["Two."]] });
    await handle(question);
    outage.looks = 2;
    await handle(edited(question, "Hello again"));
    expect(texts()).toEqual(["Two.", expect.stringMatching(/^My storage is unavailable\. I'll do this/)]);
  });

  test("an attempt shows that the model thinks, but neither shows nor stores its thoughts", async () => {
    const thought = { reasoning: "A greeting. I greet back." };
    const { handle, history, progress, texts } = startEngine({ scripts: [[thought, "Hello."]] });
    await handle(message("Hi"));
    expect(progress).toContain("thinking");
    expect(texts()).toEqual(["Hello."]);
    const { entries } = await history.read("test:a", { maxEntries: 10 });
    expect(JSON.stringify(entries)).not.toContain("greet back");
  });

  test("an answer with an unknown finish reason is stored as partial and offers Retry", async () => {
    const scripts = [["So far", { finish: "insufficient_system_resource" }]];
    const { handle, channel, history } = startEngine({ scripts });
    await handle(message("Hi"));
    expect(channel[0]?.draft.markdown).toBe(
      "So far\n\n_The answer broke off before it was finished. Press Retry to ask again._",
    );
    expect(channel[0]?.draft.buttons.map((button) => button.action)).toEqual(["retry"]);
    const { entries } = await history.read("test:a", { maxEntries: 10 });
    expect(entries.at(-1)).toMatchObject({ partial: true, messages: [{ role: "assistant", content: "So far" }] });
  });

  test("the reason for a gateway's refusal is logged at info, without people's words", async () => {
    const secret = "my secret question about tea";
    const error = { message: `Unknown thing in '${secret}'.`, code: "odd_code", param: "odd_param" };
    const { url } = await startFaultServer(json(400, { error }));
    const lines: string[] = [];
    const log = createLogger({
      level: "info",
      secrets: [],
      tokens: [],
      destination: { write: (line) => void lines.push(line) },
    });
    const { handle, texts } = startEngine({ gateway: connect(url), log });
    await handle(message(secret));
    expect(texts()).toEqual(["_The AI service refused this request (400). My log says why._"]);
    const line = lines.find((one) => one.includes("no complete answer"));
    for (const part of ["Unknown thing in", "odd_code", "odd_param", "400"]) expect(line).toContain(part);
    expect(lines.join("")).not.toContain(secret);
  });

  test("an answer says so if the model thought until it hit the length limit, and Retry asks again", async () => {
    const { handle, channel, texts } = startEngine({
      scripts: [[{ reasoning: "On the one hand …" }, { finish: "length" }]],
    });
    await handle(message("Hi"));
    expect(texts()).toEqual([expect.stringContaining("before it got to an answer")]);
    expect(channel[0]?.draft.buttons.map(({ action }) => action)).toEqual(["retry"]);
  });

  test("an attempt counts as an open stream only while the model writes", async () => {
    const hold = Promise.withResolvers<void>();
    const { accept, idle, metrics, until, channel } = startEngine({
      scripts: [["Hello", hold.promise, new Error("cut")]],
    });
    await accept(message("Hi"));
    await until(() => channel.length === 1);
    expect((await metrics.render()).body).toMatch(/upstream_streams_open 1$/m);
    hold.resolve();
    await idle();
    expect((await metrics.render()).body).toMatch(/upstream_streams_open 0$/m);
  });

  test("an attempt shows its own steps, not those of the previous attempt", async () => {
    const platform = fakePlatform();
    const shown: Step[] = [];
    const { sink } = platform;
    platform.adapter.sink = () => ({
      ...sink,
      traits: { steps: true },
      post: (draft, ...rest) => {
        shown.push(...(draft.steps ?? []));
        return sink.post(draft, ...rest);
      },
      edit: (id, draft, signal) => {
        shown.push(...(draft.steps ?? []));
        return sink.edit(id, draft, signal);
      },
    });
    const never = new Promise(() => {});
    const scripts = [[{ content: "Let me see. " }, LOOK], ["It", never], [LOOK], ["It rains."]];
    const { accept, handle, until, channel } = startEngine({ platform, tools: [look], scripts });
    const question = message("wether?");
    await accept(question);
    await until(() => channel[0]?.draft.markdown.includes("It") === true);
    await handle(edited(question, "weather?"));
    const step = { title: "look", state: "done" };
    expect(shown).toContainEqual(expect.objectContaining({ ...step, id: "1.1.0" }));
    expect(channel[0]?.draft).toMatchObject({ markdown: "It rains.", steps: [{ ...step, id: "2.1.0" }] });
  });
});

test("the end of a turn is recorded once the store accepts writes, even if the store is restarting", async () => {
  const wrapStores = refusing(
    (entries) => entries.some(({ value }) => (value as Partial<TurnRecord> | undefined)?.phase === "final"),
    { writes: 3 },
  );
  const { handle, records } = startEngine({ wrapStores, scripts: [["Tea."]] });
  const question = await handle(message("What to drink?"));
  expect(await records.load(toTurnId(question.key))).toMatchObject({ phase: "final" });
});

test("a question that could not be stored before its answer is stored together with the answer", async () => {
  const refusal = { writes: 2 };
  const wrapStores = refusing((entries) => JSON.stringify(entries).includes('"content":"tea?"'), refusal);
  const engine = startEngine({ wrapStores, scripts: [["A leaf."]] });
  await engine.handle(message("tea?"));
  const { entries } = await engine.history.read("test:a", { maxEntries: 10 });
  expect(entries.flatMap(({ messages }) => messages.map(({ content }) => content))).toEqual(["tea?", "A leaf."]);
  expect(await engine.history.isFollowed("test:a")).toBe(true);
  expect(refusal.writes).toBeLessThanOrEqual(0);
});
