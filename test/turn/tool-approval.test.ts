import { DatabaseSync } from "node:sqlite";
import { describe, expect, test, vi } from "vitest";
import { readCustomId, toCustomId } from "../../adapters/discord/write/draft.ts";
import { readButtonValue, toButtonValue } from "../../adapters/slack/write/draft.ts";
import { isOnRedis } from "../../lab/support/bot-store.ts";
import { type EngineOptions, startEngine } from "../../lab/support/engine.ts";
import { action, ada, ben, command, deleted, edited, message } from "../../lab/support/events.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { silent } from "../../lab/support/log.ts";
import type { Policy } from "../../src/config/policy/policy-file.ts";
import { createInsight, type Insight } from "../../src/insight/insight.ts";
import { readTurnId, toCallsId, toEditionId } from "../../src/port/ids.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { toCall, toTool } from "../support/tool-calls.ts";

type Script = NonNullable<EngineOptions["scripts"]>[number];

const never = new Promise<string>(() => {});

/** A tool that records each call and returns `answer`. */
function counting(answer: (note: string) => Promise<string>, how: Partial<Tool> = {}) {
  const marks: string[] = [];
  const run = async (given: unknown) => {
    const { note } = given as { note: string };
    marks.push(note);
    return answer(note);
  };
  const tool = toTool("shop__buy", run, { acts: true, ...how });
  return { tool, marks };
}

const buy = (note: string, id = "c1") => toCall("shop__buy", { note }, id);

const results = ({ requests }: ReturnType<typeof startEngine>) =>
  requests.at(-1)?.messages.flatMap(({ role, content }) => (role === "tool" ? content : []));

describe.skipIf(isOnRedis)("a call with side effects that a crash interrupted", () => {
  /** A process dies while the tool is running, and the next process continues. */
  async function die(how: Partial<Tool> = {}) {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const { tool, marks } = counting(() => (marks.length === 1 ? never : Promise.resolve("bought")), how);
    const common = { database, platform, outsideTools: () => [tool] };
    const first = startEngine({ ...common, scripts: [["Buying.", buy("tea")]] });
    await first.accept(message("buy tea"));
    while (marks.length === 0) await new Promise(setImmediate);
    // The process "dies" here: the test does not close anything of `first`, and its tool never returns.
    const second = startEngine({ ...common, scripts: [["I do not know."], ["It is bought."]] });
    await second.idle();
    return { second, platform, marks };
  }

  test("the bot does not repeat an interrupted call, and tells the model and the person that its outcome is unknown", async () => {
    const { second, platform, marks } = await die();
    expect(marks).toEqual(["tea"]);
    expect(results(second)).toEqual([expect.stringMatching(/^It is unknown whether shop__buy was done/)]);
    const [shown] = platform.channel;
    expect(shown?.draft.markdown).toMatch(/^Buying\.\n\nI do not know\.\n\n_I don't know whether `shop__buy` ran/);
    expect(shown?.draft.buttons.map(({ action }) => action)).toEqual(["rerun"]);
  });

  test("the bot repeats an interrupted call once if a person asks for it", async () => {
    const { second, platform, marks } = await die();
    const turnId = platform.channel[0]?.draft.buttons[0]?.turnId ?? "";
    const press = action("rerun", turnId);
    await second.accept(press);
    await second.handle(action("rerun", turnId));
    expect(marks).toEqual(["tea", "tea"]);
    expect(results(second)).toEqual(["bought"]);
    expect(platform.texts()[0]).toBe("Buying.\n\nIt is bought.");
    expect(platform.texts()[1]).toBe("There is nothing left to run again.");
  });

  test("the bot does not repeat an interrupted call if the button belongs to other calls", async () => {
    const { second, platform, marks } = await die();
    const turnId = readTurnId(platform.channel[0]?.draft.buttons[0]?.turnId ?? "");
    for (const id of [turnId, toCallsId(turnId, "other-calls")]) await second.handle(action("rerun", id));
    expect(marks).toEqual(["tea"]);
    expect(platform.texts().slice(1)).toEqual(
      Array(2).fill("The request has changed. Read it again before you decide."),
    );
  });

  test("the bot repeats an interrupted call automatically if repeating it is harmless", async () => {
    const { second, marks } = await die({ acts: false });
    expect(marks).toEqual(["tea", "tea"]);
    expect(results(second)).toEqual(["bought"]);
  });

  test("the dashboard counts a finished call once, even if a process dies while it answers again", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const { tool } = counting(async () => "bought");
    let insight: Insight | undefined;
    const openInsight: EngineOptions["openInsight"] = (stores, database) =>
      (insight = createInsight({ stores, database, processName: "one", describe: vi.fn(), log: silent }));
    const common = { database, platform, outsideTools: () => [tool], openInsight };
    const first = startEngine({ ...common, scripts: [["Buying.", buy("tea")], [new Error("cut")], [never]] });
    await first.accept(message("buy tea"));
    await first.idle();
    await first.accept(action("retry", platform.channel[0]?.draft.buttons[0]?.turnId ?? ""));
    while (first.requests.length < 3) await new Promise(setImmediate);
    // The process "dies" here, as above.
    const second = startEngine({ ...common, scripts: [["It is bought."]] });
    await second.idle();
    const { counts } = (await insight?.trends.read("day")) ?? {};
    expect(counts?.["tools"]?.["shop__buy"]?.reduce((sum, count) => sum + count)).toBe(1);
  });
});

describe.skipIf(isOnRedis)("a turn that resumes after a start", () => {
  test("a resumed turn waits for servers that are still starting before it chooses its tools", async () => {
    const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform()];
    const { tool, marks } = counting(() => (marks.length === 1 ? never : Promise.resolve("bought")), { acts: false });
    const first = startEngine({ database, platform, outsideTools: () => [tool], scripts: [["Buying.", buy("tea")]] });
    await first.accept(message("buy tea"));
    while (marks.length === 0) await new Promise(setImmediate);
    // The process "dies" here, as above.
    const started = Promise.withResolvers<void>();
    const waiting = Promise.withResolvers<void>();
    let tools: readonly Tool[] = [];
    const outside = {
      toolsOf: () => tools,
      tried: () => (waiting.resolve(), started.promise),
    };
    const second = startEngine({ database, platform, outside, scripts: [["It is bought."]] });
    await Promise.race([waiting.promise, second.idle()]);
    tools = [tool];
    started.resolve();
    await second.idle();
    expect(marks).toEqual(["tea", "tea"]);
    expect(results(second)).toEqual(["bought"]);
  });
});

describe("a call with side effects", () => {
  test("the bot does not repeat a call that timed out under another number", async () => {
    const { tool, marks } = counting(() => never, { timeoutMs: 5 });
    const engine = startEngine({ outsideTools: () => [tool], scripts: [[buy("tea")], [buy("tea", "c2")], ["Sorry."]] });
    await engine.handle(message("buy tea"));
    expect(marks).toEqual(["tea"]);
    expect(engine.texts()[0]).toMatch(/^Sorry\.\n\n_I don't know/);
  });

  test("Retry does not repeat a finished call", async () => {
    const { tool, marks } = counting(async () => "bought");
    const scripts = [["Buying.", buy("tea")], [new Error("cut")], ["Done."]];
    const engine = startEngine({ outsideTools: () => [tool], scripts });
    await engine.handle(message("buy tea"));
    const turnId = engine.channel[0]?.draft.buttons[0]?.turnId ?? "";
    await engine.handle(action("retry", turnId));
    expect(marks).toEqual(["tea"]);
    expect(engine.texts()).toEqual(["Buying.\n\nDone."]);
    expect(results(engine)).toEqual(["bought"]);
  });

  /** A complete answer after a call. */
  async function buyTea(more: Script[], how: Partial<Tool> = {}) {
    const { tool, marks } = counting(async (note) => `bought ${note}`, how);
    const platform = fakePlatform({ traits: { secondThoughts: true } });
    const scripts = [[buy("tea")], ["Tea it is."], ...more];
    const engine = startEngine({ platform, outsideTools: () => [tool], scripts });
    const question = await engine.handle(message("buy tea"));
    const regenerate = async () => {
      const found = engine.channel[0]?.draft.buttons.find((button) => button.action === "regenerate");
      await engine.handle(action("regenerate", found?.turnId ?? ""));
    };
    return { engine, marks, question, regenerate };
  }

  test("a call counts as new if the model makes it after another request", async () => {
    const { engine, marks, regenerate } = await buyTea([[buy("milk", "c2")], ["Tea with milk."], ["Both, then."]]);
    await regenerate();
    expect(marks).toEqual(["tea", "milk"]);
    expect(results(engine)).toEqual(["bought tea", "bought milk"]);
    await regenerate();
    expect(marks).toEqual(["tea", "milk"]);
    expect(results(engine)).toEqual(["bought tea", "bought milk"]);
    expect(engine.texts()).toEqual(["Both, then."]);
  });

  test("Regenerate forgets a call that is harmless to repeat", async () => {
    const { engine, marks, regenerate } = await buyTea([[buy("milk")], ["Milk it is."]], { acts: false });
    await regenerate();
    expect(marks).toEqual(["tea", "milk"]);
    expect(results(engine)).toEqual(["bought milk"]);
  });

  test("the model learns of a finished call when a person edits the question after the answer", async () => {
    const { engine, marks, question } = await buyTea([[buy("coffee", "c2")], ["Coffee too."]]);
    await engine.handle(edited(question, "buy coffee"));
    expect(marks).toEqual(["tea", "coffee"]);
    expect(results(engine)).toEqual([
      "bought tea\n(This call was made before the question was last edited.)",
      "bought coffee",
    ]);
    expect(engine.texts()).toEqual(["Coffee too."]);
  });

  test("a call of unknown outcome is offered again before the other answers, even if another answer was shown", async () => {
    const { tool, marks } = counting(() =>
      marks.length === 1 ? Promise.reject(new Error("cut")) : Promise.resolve("ok"),
    );
    const platform = fakePlatform({ traits: { secondThoughts: true } });
    const scripts = [["Tea?"], [buy("tea")], ["Maybe."], ["Bought."]];
    const engine = startEngine({ platform, outsideTools: () => [tool], scripts });
    await engine.handle(message("buy tea"));
    const press = async (label: string) => {
      const button = engine.channel[0]?.draft.buttons.find((one) => one.label === label);
      if (button === undefined || button.action === "edit") throw new Error(`there is no button ${label}`);
      await engine.handle(action(button.action, button.turnId));
    };
    const labels = () => engine.channel[0]?.draft.buttons.map(({ label }) => label);
    await press("Regenerate");
    expect(labels()).toEqual(["Run it again", "‹ 2/2", "What did you see?"]);
    await press("‹ 2/2");
    await press("1/2 ›");
    expect(engine.texts()[0]).toMatch(/^Maybe\.\n\n_I don't know whether/);
    expect(labels()).toEqual(["Run it again", "‹ 2/2", "What did you see?"]);
    await press("Run it again");
    expect(marks).toEqual(["tea", "tea"]);
    expect(engine.texts()).toEqual(["Bought."]);
    expect(labels()?.slice(0, 2)).toEqual(["‹ 2/2", "Regenerate"]);
  });

  test("the model learns of a finished call when a person edits the question during the answer", async () => {
    const { tool, marks } = counting(async () => "bought");
    const scripts = [[buy("tea")], ["Bought", never], ["Tea it is."]];
    const engine = startEngine({ outsideTools: () => [tool], scripts });
    const question = message("buy tea");
    await engine.accept(question);
    while (engine.requests.length < 2) await new Promise(setImmediate);
    await engine.handle(edited(question, "buy coffee"));
    expect(marks).toEqual(["tea"]);
    expect(results(engine)).toEqual(["bought\n(This call was made before the question was last edited.)"]);
    expect(engine.texts()).toEqual(["Tea it is."]);
  });
});

describe("a call that needs approval", () => {
  const asked = { approval: { server: "shop" } };

  async function ask(scripts = [["Let me.", buy("tea")], ["Here you are."]], answer = async () => "bought") {
    const database = new DatabaseSync(":memory:");
    const platform = fakePlatform();
    const { tool, marks } = counting(answer, asked);
    const common = { database, platform, outsideTools: () => [tool] };
    const engine = startEngine({ ...common, scripts });
    const question = await engine.handle(message("buy tea"));
    const id = platform.channel[0]?.draft.buttons[0]?.turnId ?? "";
    return { engine, common, marks, question, id, platform };
  }

  test("a call waits for approval and shows its name, its server and all its arguments", async () => {
    const { engine, marks } = await ask([["Let me.", buy("```\n@everyone \u{e0041}\u200b tea")], ["Here."]]);
    const [shown] = engine.channel;
    expect(shown?.draft.markdown).toBe(
      'Let me.\n\n**May I use `shop__buy`** of the server `shop`?\n\n````json\n{\n  "note": "```\\n@everyone \\udb40\\udc41\\u200b tea"\n}\n````',
    );
    expect(shown?.draft.buttons.map(({ label }) => label)).toEqual([
      "Approve once",
      "Always in this conversation",
      "Deny",
    ]);
    expect(marks).toEqual([]);
    // A waiting call occupies no slot.
    await engine.handle(message("and you?"));
    expect(engine.channel).toHaveLength(2);
  });

  test("an approved call is made once, by any process, however often the button is pressed", async () => {
    const { common, marks, id, platform } = await ask();
    const next = startEngine({ ...common, scripts: [["Here you are."]] });
    for (const press of [action("approve", id), action("approve", id), action("deny", id)]) await next.handle(press);
    expect(marks).toEqual(["tea"]);
    const [answer, ...notices] = platform.texts();
    expect(answer).toBe("Let me.\n\n_`Ada` allowed that once._\n\nHere you are.");
    expect(notices).toEqual(["This has already been decided.", "This has already been decided."]);
  });

  test("the bot does not make a denied call, and tells the model so", async () => {
    const { engine, marks, id } = await ask([["Let me.", buy("tea")], ["Then not."]]);
    await engine.handle(action("deny", id));
    expect(marks).toEqual([]);
    expect(results(engine)).toEqual([expect.stringMatching(/^Not run: the user did not allow this call/)]);
    expect(engine.texts()).toEqual(["Let me.\n\n_`Ada` did not allow that._\n\nThen not."]);
  });

  test("a call needs no approval if a person allowed it for the conversation", async () => {
    const { engine, marks, id } = await ask([[buy("tea")], ["Tea."], [buy("milk")], ["Milk."], [buy("gin")]]);
    await engine.accept(action("always", id));
    await engine.handle(message("and milk"));
    expect(marks).toEqual(["tea", "milk"]);
    await engine.handle(message("buy gin", { conversationId: "test:b" }));
    expect(marks).toEqual(["tea", "milk"]);
    expect(engine.texts()[2]).toContain("**May I use `shop__buy`**");
  });

  test("only the asker or a moderator can decide about a call", async () => {
    const { engine, marks, id } = await ask();
    await engine.handle(action("approve", id, { author: ben }));
    expect(marks).toEqual([]);
    expect(engine.texts()[1]).toMatch(/^Only the person who asked/);
    await engine.handle(action("approve", id, { author: { ...ben, isModerator: true } }));
    expect(marks).toEqual(["tea"]);
  });

  const CHANGED = "The request has changed. Read it again before you decide.";

  test("a button that showed other calls does nothing, after an edit and in another process too", async () => {
    const { engine, common, marks, question, id } = await ask([[buy("tea")], [buy("coffee")]]);
    await engine.handle(edited(question, "buy coffee"));
    expect(engine.texts()).toEqual([expect.stringContaining('"note": "coffee"')]);
    const again = engine.channel[0]?.draft.buttons[0]?.turnId ?? "";
    await engine.queue.close(0);
    const next = startEngine({ ...common, scripts: [["Coffee."], [buy("gin")]] });
    for (const name of ["approve", "always", "deny"] as const) await next.handle(action(name, id));
    expect(marks).toEqual([]);
    expect(next.texts().slice(1)).toEqual([CHANGED, CHANGED, CHANGED]);
    await next.accept(action("approve", again));
    await next.handle(message("buy gin"));
    // The old "Always" did not allow anything either.
    expect(marks).toEqual(["coffee"]);
    expect(next.texts()[0]).toBe("_`Ada` allowed that once._\n\nCoffee.");
    expect(next.texts().at(-1)).toContain("**May I use `shop__buy`**");
  });

  test("an old button does nothing if the same call is asked again after an edit", async () => {
    const { engine, marks, question, id } = await ask([[buy("tea")], [buy("tea")], ["Tea."]]);
    await engine.handle(edited(question, "buy tea, please"));
    const again = engine.channel[0]?.draft.buttons[0]?.turnId ?? "";
    await engine.accept(action("approve", id));
    await engine.accept(action("approve", again));
    await engine.handle(action("approve", id));
    expect(marks).toEqual(["tea"]);
    expect(engine.texts().slice(1)).toEqual([CHANGED, "This has already been decided."]);
  });

  test("a card with several calls does nothing if one call has changed", async () => {
    const both = (one: string, other: string) => {
      const calls = [...buy(one).tool_calls, ...buy(other, "c2").tool_calls];
      return { tool_calls: calls.map((call, index) => ({ ...call, index })) };
    };
    const { engine, marks, question, id } = await ask([[both("tea", "milk")], [both("tea", "gin")], ["Both."]]);
    await engine.accept(edited(question, "buy tea and gin"));
    await engine.handle(action("approve", id));
    expect(marks).toEqual([]);
    expect(engine.texts()[1]).toBe(CHANGED);
    await engine.handle(action("approve", engine.channel[0]?.draft.buttons[0]?.turnId ?? ""));
    expect(marks).toEqual(["tea", "gin"]);
  });

  test("the button ids of calls fit every platform, however long the calls are", async () => {
    const { engine } = await ask([[buy("x".repeat(5_000))]]);
    const id = engine.channel.at(-1)?.draft.buttons[0]?.turnId ?? "";
    const discord = toCustomId({ action: "approve", turnId: id, root: "1".repeat(20), mark: "2".repeat(25) });
    expect(readCustomId(discord)).toMatchObject({ turnId: id, root: "1".repeat(20), mark: "2".repeat(25) });
    expect(readButtonValue(toButtonValue({ action: "approve", turnId: id }))).toEqual({
      action: "approve",
      turnId: id,
    });
  });

  test("a waiting call stays as it is if an edit changes no words", async () => {
    const { engine, marks, question, id } = await ask();
    await engine.accept(edited(question, "buy tea"));
    await engine.handle(action("approve", id));
    expect(marks).toEqual(["tea"]);
    expect(engine.requests).toHaveLength(2);
  });

  test("Regenerate asks for approval again, and only the new answer's buttons decide", async () => {
    const platform = fakePlatform({ traits: { secondThoughts: true } });
    const { tool, marks } = counting(async () => "bought", asked);
    const scripts = [["Tea?"], [buy("tea")], ["Bought."]];
    const engine = startEngine({ platform, outsideTools: () => [tool], scripts });
    await engine.handle(message("buy tea"));
    const regenerate = engine.channel[0]?.draft.buttons.find((button) => button.action === "regenerate");
    await engine.handle(action("regenerate", regenerate?.turnId ?? ""));
    const buttons = engine.channel[0]?.draft.buttons ?? [];
    expect(buttons.map(({ label }) => label)).toEqual(["Approve once", "Always in this conversation", "Deny"]);
    const id = buttons[0]?.turnId ?? "";
    await engine.accept(action("show", toEditionId(readTurnId(id), 1)));
    await engine.handle(action("approve", id));
    expect(marks).toEqual(["tea"]);
    const [answer, refusal] = engine.texts();
    expect(answer).toMatch(/Bought\.$/);
    expect(refusal).toBe("This answer is waiting for approval.");
    expect(engine.channel[0]?.draft.buttons[0]?.label).toBe("‹ 2/2");
  });

  test("the bot does not make an approved call whose tool is gone or denied meanwhile, and tells the model", async () => {
    for (const what of ["gone", "denied"] as const) {
      const { engine, common, marks, id, platform } = await ask();
      await engine.queue.close(0);
      const policy: Policy = { access: { rules: [{ deny: ["tool:shop__buy"] }] } };
      const next = startEngine({
        ...common,
        ...(what === "gone" ? { outsideTools: () => [] } : { policy: () => policy }),
        scripts: [["Not possible."]],
      });
      await next.handle(action("approve", id));
      expect([what, marks]).toEqual([what, []]);
      expect(results(next)).toEqual([expect.stringMatching(/^There is no tool "shop__buy"/)]);
      expect(platform.texts()[0]).toMatch(/Not possible\.$/);
    }
  });

  test("two calls can wait at once, and each is decided by its own buttons", async () => {
    const { engine, marks, id } = await ask([[buy("tea")], [buy("milk")], ["Milk."], ["Tea."]]);
    await engine.handle(message("and milk"));
    expect(marks).toEqual([]);
    const other = engine.channel[1]?.draft.buttons[0]?.turnId ?? "";
    await engine.handle(action("approve", other));
    expect(marks).toEqual(["milk"]);
    await engine.handle(action("deny", id));
    expect(marks).toEqual(["milk"]);
    expect(engine.texts()).toEqual(["_`Ada` did not allow that._\n\nTea.", "_`Ada` allowed that once._\n\nMilk."]);
  });

  test("deleting the question or pressing Stop removes a waiting call", async () => {
    const one = await ask();
    await one.engine.handle(deleted(one.question));
    expect(one.engine.channel).toEqual([]);
    const other = await ask();
    const turnId = other.id.split("~")[0] ?? "";
    await other.engine.accept(action("stop", turnId));
    await other.engine.handle(action("approve", other.id));
    expect([...one.marks, ...other.marks]).toEqual([]);
    expect(other.engine.texts()).toEqual([
      "Let me.\n\n_Stopped. I didn't make the calls that were waiting for your approval._",
      "Stopped. I didn't make the calls that were waiting for your approval.",
      "This has already been decided.",
    ]);
  });

  test("a waiting call shows its arguments as the tool gets them, however the model encodes them", async () => {
    const given = { name: "shop__buy", arguments: JSON.stringify('{"note":"\\u0074ea"}') };
    const call = { index: 0, id: "c1", type: "function" as const, function: given };
    const { engine, marks, id } = await ask([[{ tool_calls: [call] }], ["Tea."]]);
    expect(engine.texts()[0]).toContain('{\n  "note": "tea"\n}');
    await engine.handle(action("approve", id));
    expect(marks).toEqual(["tea"]);
  });

  test.each([
    ["too long for a person to read", "x".repeat(6_100)],
    ["too long for a card once its hidden characters are visible", "\u3164".repeat(2_000)],
  ])("the bot refuses a call that is %s", async (_, note) => {
    const { engine, marks } = await ask([[buy(note)], ["Too long."]]);
    expect(marks).toEqual([]);
    expect(engine.texts()).toEqual(["Too long."]);
    expect(results(engine)).toEqual([expect.stringMatching(/^Not run: a user must read/)]);
  });
});

describe("a prompt of a server", () => {
  test("the model gets the full text of a server's prompt, and the history keeps the person's words", async () => {
    const asked: string[] = [];
    const readPrompt = async (_: unknown, message: string) => {
      asked.push(message);
      return message.startsWith("!shop:") ? [{ role: "user" as const, content: "Restock the tea." }] : undefined;
    };
    const scripts = [["Done."], ["You are welcome."]];
    const engine = startEngine({ outside: { readPrompt }, scripts });
    await engine.handle(message("!shop:restock tea"));
    await engine.handle(message("thanks"));
    expect(asked).toEqual(["!shop:restock tea", "thanks"]);
    const said = engine.requests.map(({ messages }) => messages.slice(1).map(({ content }) => content));
    expect(said[0]).toEqual([expect.stringContaining("!shop:restock tea"), "Restock the tea."]);
    expect(said[1]).toEqual([expect.stringContaining("!shop:restock tea"), "Done.", expect.stringContaining("thanks")]);
    expect(engine.texts()).toEqual(["Done.", "You are welcome."]);
  });

  test("the person learns that a prompt is unavailable, and the bot does not ask the model", async () => {
    const engine = startEngine({ outside: { readPrompt: async () => "That needs `what` as well." } });
    await engine.handle(message("!shop:restock"));
    expect(engine.texts()).toEqual(["That needs `what` as well."]);
    expect(engine.requests).toEqual([]);
  });

  test.each(["!shop:restock", "/shop:restock tea", " !SHOP:Restock", "!shop:re/stock"])(
    "a prompt of a denied server is denied, however it is written: %s",
    async (text) => {
      const policy = () => ({ access: { rules: [{ deny: "server:shop" }] } });
      const readPrompt = async () => [{ role: "user" as const, content: "Restock the tea." }];
      const engine = startEngine({ policy, outside: { readPrompt }, scripts: [["Done."]] });
      await engine.handle(message(text));
      expect(engine.texts()).toEqual([expect.stringContaining("You can't use the tool")]);
      expect(engine.requests).toEqual([]);
    },
  );
});

describe("a server that is off in a channel", () => {
  test("from the next question on, the model gets no tools of a server that is off", async () => {
    const { tool } = counting(async () => "bought");
    const offs: (readonly string[])[] = [];
    const outside = {
      toolsOf: (_: unknown, off: readonly string[]) => {
        offs.push(off);
        return off.includes("shop") ? [] : [tool];
      },
      report: () => [{ name: "shop", state: "ready" as const, tools: [tool], prompts: [] }],
    };
    const engine = startEngine({ outside, scripts: [["One."], ["Two."]] });
    await engine.handle(message("one"));
    await engine.accept(command("tools", "off shop"));
    await engine.handle(message("two"));
    const offered = engine.requests.map(({ tools = [] }) => tools.map((one) => one.function.name));
    expect(offered).toEqual([["schedule", "shop__buy"], ["schedule"]]);
  });
});

describe("/forget", () => {
  test.each([
    ["conversation", {}],
    ["conversation", { mayConfigure: false }],
    ["me for good", {}],
  ])("/forget revokes permanent approvals: %s %j", async (words, rights) => {
    const { tool, marks } = counting(async () => "bought", { approval: { server: "shop" } });
    const engine = startEngine({ outsideTools: () => [tool], scripts: [[buy("tea")], ["Done."], [buy("more", "c2")]] });
    const author = { ...ada, ...rights };
    await engine.handle(message("buy", { author }));
    await engine.handle(action("always", engine.channel[0]?.draft.buttons[0]?.turnId ?? "", { author }));
    await engine.handle(command("forget", words, { author }));
    await engine.handle(message("buy more", { author }));
    expect(marks).toEqual(["tea"]);
    expect(engine.texts().at(-1)).toMatch(/May I use `shop__buy`/);
  });
});
