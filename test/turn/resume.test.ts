import { describe, expect, test } from "vitest";
import { fakeGateway, type Step } from "../../lab/support/fake-gateway.ts";
import type { ChatMessage } from "../../src/gateway/chunks.ts";
import { runTurn } from "../../src/turn/model-loop.ts";
import { newLedger, toCall, toTool } from "../support/tool-calls.ts";
import { loopDeps } from "./loop-stage.ts";

const SAID = "Tea is a drink that is made of leaves and hot water. It was first drunk in China, where";
const LAST_WORDS = "was first drunk in China, where";
const QUESTION: ChatMessage = { role: "user", content: "What is tea?" };

const look = toTool("look", async () => "leaves");
const LOOK = toCall("look");

/** Continues this text with scripted model answers. */
async function setUp(said: string, ...scripts: Step[][]) {
  const { gateway, requests } = fakeGateway(...scripts);
  const ledger = await newLedger();
  const messages = [QUESTION];
  let text = "";
  const deps = { ...loopDeps(gateway, look, ledger), shownText: said };
  const finish = await runTurn(messages, deps, (more) => void (text += more), new AbortController().signal).catch(
    (error: unknown) => error,
  );
  const [asked = [], askedNext] = requests.map((request) => request.messages);
  return { finish, text, added: messages.slice(1), asked, askedNext, rounds: ledger.rounds };
}

describe("an answer that another process started", () => {
  test("goOn continues after the last words, which it asks the model to repeat", async () => {
    const { finish, text, added, asked } = await setUp(SAID, ["was first drunk ", "in China, where", " it grows."]);
    expect(finish).toBe("stop");
    expect(text).toBe(`${SAID} it grows.`);
    expect(added).toEqual([{ role: "assistant", content: `${SAID} it grows.` }]);
    expect(asked.slice(0, 2)).toEqual([QUESTION, { role: "assistant", content: SAID }]);
    expect(asked[2]?.role).toBe("user");
    expect(asked[2]?.content).toMatch(new RegExp(`\n\n${LAST_WORDS}$`));
  });

  test.each([
    ["in the middle of a word", SAID.slice(0, -3), ["It was first drunk in China, where it grows."], "ere it grows."],
    ["at the end of a paragraph", `${SAID}\n\n`, [`${LAST_WORDS}\n\nIt grows.`], "\n\nIt grows."],
    ["inside code that the model opens again", SAID, ["```\n", LAST_WORDS, " it grows."], " it grows."],
    ["where it was whole", SAID, [LAST_WORDS], ""],
  ])("goOn continues %s", async (_, said, script, rest) => {
    const { text } = await setUp(said, script);
    expect(text).toBe(said.trimEnd() + rest);
  });

  test("goOn continues in writing without spaces between words", async () => {
    const said = `${"お茶は葉とお湯で作る飲み物です。".repeat(4)}世界のどこでも飲まれていますが、その歴史はとても古く、最初に飲まれたのは`;
    const { text, asked } = await setUp(said, [said.slice(-32), "中国で生まれました。"]);
    expect(asked[2]?.content).toContain(said.slice(-32));
    expect(text).toBe(`${said}中国で生まれました。`);
  });

  test.each([
    ["begins it anew", ["Tea is a drink that is made of leaves and hot water. ", "It was first drunk in China, where"]],
    ["says something else", ["I am sorry."]],
    ["says nothing", []],
  ])("goOn restarts if the model %s", async (_, script) => {
    const { text, added, askedNext } = await setUp(SAID, script, ["Tea is nice."]);
    expect([text, added, askedNext]).toEqual([
      "Tea is nice.",
      [{ role: "assistant", content: "Tea is nice." }],
      [QUESTION],
    ]);
  });

  test("goOn passes on no text of a restarted answer that breaks off before it is as long as the shown text", async () => {
    const cut = new Error("cut");
    expect(await setUp(SAID, [], ["Tea is nice.", cut])).toMatchObject({ finish: cut, text: "", added: [] });
    const longer = `${SAID} it grows.`;
    expect(await setUp(SAID, [], ["Tea ", longer, cut])).toMatchObject({ finish: cut, text: `Tea ${longer}` });
  });

  test("goOn keeps the received part of the continuation if that breaks off", async () => {
    const cut = new Error("cut");
    const { finish, text, added } = await setUp(SAID, [LAST_WORDS, " it", cut]);
    expect(finish).toBe(cut);
    expect(text).toBe(`${SAID} it`);
    expect(added).toEqual([{ role: "assistant", content: `${SAID} it` }]);
  });

  test("goOn adds nothing if the model cannot be asked", async () => {
    const away = new Error("away");
    expect(await setUp(SAID, [away])).toMatchObject({ finish: away, text: "", added: [] });
  });

  test("goOn lets the model call a tool before the text continues", async () => {
    const { text, added, askedNext } = await setUp(SAID, [LOOK], [LAST_WORDS, " it grows."]);
    expect(text).toBe(`${SAID} it grows.`);
    expect(askedNext?.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant", "user"]);
    expect(added.map(({ role }) => role)).toEqual(["assistant", "tool", "assistant"]);
    expect(added[2]?.content).toBe(`${SAID} it grows.`);
  });

  test("goOn puts the whole text before a tool into the ledger, for the next process", async () => {
    const { rounds } = await setUp(SAID, [LAST_WORDS, " it grows.", LOOK], ["So it is."]);
    expect(rounds.map(({ content }) => content)).toEqual([`${SAID} it grows.`]);
  });

  test.each(["Tea is a drink.", "no ".repeat(200)])("goOn restarts if the last words are ambiguous", async (said) => {
    const { text, asked } = await setUp(said, ["Tea."]);
    expect([text, asked]).toEqual(["Tea.", [QUESTION]]);
  });
});
