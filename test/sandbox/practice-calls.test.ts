import { describe, expect, test } from "vitest";
import { readChatRequest } from "../../src/sandbox/chat-request.ts";
import { readDirections } from "../../src/sandbox/directions.ts";
import { FAULTS } from "../../src/sandbox/faults.ts";
import { answerFromResults, chooseCalls } from "../../src/sandbox/practice-model.ts";

const define = (name: string, properties: object, required: string[]) => ({
  type: "function",
  function: { name, parameters: { type: "object", properties, required } },
});
const TIME = define("current_time", { zone: { type: "string" }, format: { type: "string", enum: ["iso", "human"] } }, [
  "zone",
]);
const RECALL = define("recall", { query: { type: "string" }, limit: { type: "integer", minimum: 1, maximum: 20 } }, [
  "query",
]);
const DRAW = define("generate_image", { prompt: { type: "string" } }, ["prompt"]);

function callsFor(messages: unknown[] | string, fields: Record<string, unknown> = {}) {
  const list = typeof messages === "string" ? [{ role: "user", content: messages }] : messages;
  const request = readChatRequest({ model: "sandbox-chat", messages: list, tools: [TIME, RECALL, DRAW], ...fields });
  const calls = chooseCalls(request, readDirections(request.messages, FAULTS));
  return calls.map((call) => [call.function.name, JSON.parse(call.function.arguments) as unknown]);
}

const called = (id: string, name: string) => ({
  role: "assistant",
  tool_calls: [{ id, type: "function", function: { name, arguments: "{}" } }],
});
const answered = (id: string, content: string) => ({ role: "tool", tool_call_id: id, content });

function idsOf(content: string): string[] {
  const request = readChatRequest({ model: "m", messages: [{ role: "user", content }], tools: [TIME, RECALL] });
  return chooseCalls(request, readDirections(request.messages, FAULTS)).map(({ id }) => id);
}

function answer(...messages: unknown[]): string | undefined {
  return answerFromResults(readChatRequest({ model: "m", messages }).messages);
}

describe("the practice model chooses tools", () => {
  test("the practice model calls a tool that the words name, with arguments from the words", () => {
    expect(callsFor("use current_time in Berlin, format iso")).toEqual([
      ["current_time", { zone: "Europe/Berlin", format: "iso" }],
    ]);
    const search = define("notes__search", {}, []);
    expect(callsFor("use notes__search", { tools: [search] })).toEqual([["notes__search", {}]]);
    expect(callsFor('Please recall "red cats", limit 3')).toEqual([["recall", { query: "red cats", limit: 3 }]]);
    expect(callsFor("current time, zone: Asia/Kolkata")).toEqual([["current_time", { zone: "Asia/Kolkata" }]]);
  });

  test("the practice model calls several tools in the order of their names, but only one if parallel calls are off", () => {
    const words = 'recall "tea" and tell the current_time';
    expect(callsFor(words).map(([name]) => name)).toEqual(["recall", "current_time"]);
    expect(callsFor(words, { parallel_tool_calls: false }).map(([name]) => name)).toEqual(["recall"]);
  });

  test("the practice model calls the tool that a question needs", () => {
    expect(callsFor("What's the time?")).toEqual([["current_time", { zone: "UTC" }]]);
    expect(callsFor("draw a picture of a red boat")).toEqual([["generate_image", { prompt: "a red boat" }]]);
    expect(callsFor("once upon a time")).toEqual([]);
  });

  test("the practice model changes the newest image of the conversation", () => {
    const draw = define(
      "generate_image",
      {
        prompt: { type: "string" },
        count: { type: "integer", minimum: 1, maximum: 4, default: 1 },
        use_references: { type: "array", items: { type: "string" }, default: [] },
      },
      ["prompt"],
    );
    const drawn = [
      { role: "user", content: "draw a boat" },
      called("a", "generate_image"),
      answered("a", "One image was created and shown."),
      { role: "assistant", content: "There it is." },
    ];
    const ask = (words: string, before: unknown[] = drawn) =>
      callsFor([...before, { role: "user", content: words }], { tools: [TIME, draw] });
    const last = { use_references: ["last"] };
    expect(ask("now at night")).toEqual([["generate_image", { prompt: "now at night", ...last }]]);
    const note = '(An image was created and shown here for "Ada", from the prompt: "a boat")\n\nmake it red';
    expect(ask(note)).toEqual([["generate_image", { prompt: "make it red", ...last }]]);
    expect(ask("now what?")).toEqual([]);
    expect(ask("now at night", [])).toEqual([]);
    expect(ask("draw me 2 cats, 16:9", [])).toEqual([["generate_image", { prompt: "draw me 2 cats, 16:9", count: 2 }]]);
  });

  test("the setting tool_choice none never calls a tool, required always does, and an object calls its tool", () => {
    expect(callsFor("use recall", { tool_choice: "none" })).toEqual([]);
    expect(callsFor("hello", { tool_choice: "auto" })).toEqual([]);
    expect(callsFor("hello", { tool_choice: "required" })).toEqual([["current_time", { zone: "UTC" }]]);
    expect(callsFor("use recall", { tool_choice: { type: "function", function: { name: "generate_image" } } })).toEqual(
      [["generate_image", { prompt: "use recall" }]],
    );
  });

  test("the practice model does not take an image's name for the user's words", () => {
    const content = [
      { type: "text", text: "what a nice one" },
      { type: "text", text: 'Attached picture "draw-a-fox.png":' },
      { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } },
    ];
    expect(callsFor([{ role: "user", content }])).toEqual([]);
  });

  test("the practice model does not call tools named after say:", () =>
    expect(callsFor("say: use recall")).toEqual([]));

  test('each "then" adds one round of calls, and "forever" never ends', () => {
    const asked = { role: "user", content: "use current_time, then recall" };
    const once = [asked, called("a", "current_time"), answered("a", "12:00")];
    expect(callsFor([asked]).map(([name]) => name)).toEqual(["current_time"]);
    expect(callsFor(once).map(([name]) => name)).toEqual(["recall"]);
    expect(callsFor([...once, called("b", "recall"), answered("b", "nothing")])).toEqual([]);
    const again = [{ role: "user", content: "use recall forever" }, called("a", "recall"), answered("a", "x")];
    expect(callsFor(again).map(([name]) => name)).toEqual(["recall"]);
  });

  test("the practice model calls a required tool once, and answers its result", () => {
    const messages = [{ role: "user", content: "hello" }, called("a", "recall"), answered("a", "x")];
    expect(callsFor(messages, { tool_choice: "required" })).toEqual([]);
  });

  test("the ids of calls differ between calls and rounds, and repeat with the request", () => {
    const ids = idsOf("use recall and current_time");
    expect(new Set([...ids, ...idsOf("use recall")]).size).toBe(3);
    expect(idsOf("use recall and current_time")).toEqual(ids);
  });
});

describe("the practice model answers from results", () => {
  const asked = { role: "user", content: "hi" };

  test("the practice model repeats each result word for word under its tool's name", () => {
    const two = {
      role: "assistant",
      tool_calls: [...called("a", "recall").tool_calls, ...called("b", "current_time").tool_calls],
    };
    expect(answer(asked, two, answered("b", "12:00"), answered("a", ""))).toBe(
      "Here is what I found:\n\n**current_time**: 12:00\n\n**recall** returned nothing.",
    );
  });

  test("the practice model fences results of several lines, whatever fences they contain", () => {
    expect(answer(asked, called("a", "recall"), answered("a", "x\n```\ny"))).toContain("````\nx\n```\ny\n````");
  });

  test("the practice model answers from no results if no tool has just returned", () =>
    expect(answer(asked)).toBeUndefined());
});
