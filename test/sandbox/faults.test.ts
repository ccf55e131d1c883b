import { describe, expect, test } from "vitest";
import { FAULTS, findFault } from "../../src/sandbox/faults.ts";
import { ask, chunksOf, contentOf, refusalOf, start, textOf } from "./sandbox.ts";

const SAY = "say: one two three four five six seven eight";
const SAID = SAY.slice("say: ".length);

describe("a request for a fault of the sandbox", () => {
  test("a user can request a fault by model suffix, by header, and in words", async () => {
    const sandbox = await start();
    const refusals = [
      ask(sandbox, "hi", { model: "sandbox-chat:503" }),
      ask(sandbox, "hi", {}, { "x-sandbox-fault": "503" }),
      ask(sandbox, "Please, sandbox fault: 503. Thank you"),
    ];
    for (const refusal of refusals) expect(await refusalOf(refusal)).toMatchObject({ status: 503, code: "overloaded" });
  });

  test("the sandbox refuses an unknown or mistyped fault, and lists the names of faults", async () => {
    const sandbox = await start();
    const refusal = await refusalOf(ask(sandbox, "hi", { model: "sandbox-chat:stal" }));
    expect(refusal).toMatchObject({
      status: 400,
      code: "unknown_fault",
      param: "model",
      message: expect.stringContaining("content-filter"),
    });
    expect(await contentOf(ask(sandbox, "sandbox fault: stal"))).toContain("`content-filter`");
    expect(await contentOf(ask(sandbox, "sandbox faults"))).toContain("`content-filter`");
  });

  test("the text after say: never requests a fault", async () => {
    const sandbox = await start();
    expect(await contentOf(ask(sandbox, "say: sandbox fault: 500"))).toBe("sandbox fault: 500");
  });

  test("a request that only names a fault gets a text that the fault breaks, and a request for an echo gets a broken echo", async () => {
    const sandbox = await start();
    expect((await contentOf(ask(sandbox, "sandbox fault: slow-head=0"))).length).toBeGreaterThan(200);
    expect(await contentOf(ask(sandbox, "sandbox fault: length=2 say: a b c d e f"))).toBe("a b c");
  });

  test("a fault named before the last paragraph does not count", async () => {
    const sandbox = await start();
    expect(await contentOf(ask(sandbox, "sandbox fault: reset\n\nhello there"))).toMatch(/^Hello!/);
    expect(await refusalOf(ask(sandbox, "sandbox fault: reset\n\nsandbox fault: 503"))).toMatchObject({ status: 503 });
    expect(await contentOf(ask(sandbox, "sandbox fault: 500\n\nsandbox faults"))).toContain("`content-filter`");
    expect(await contentOf(ask(sandbox, "sandbox fault: 500\n\nsay: a\n\nb"))).toBe("a\n\nb");
  });

  test("a fault with `-once` breaks only the first of two equal requests, and then again the first of the next two", async () => {
    const sandbox = await start();
    const model = "sandbox-chat:500-once";
    const statuses: number[] = [];
    for (const words of ["a", "a", "b", "b", "a"]) statuses.push((await ask(sandbox, words, { model })).status);
    expect(statuses).toEqual([500, 200, 500, 200, 500]);
  });

  test("the sandbox limits the arguments of faults", () => {
    expect(findFault("stall=999999", FAULTS)).toMatchObject({ name: "stall", argument: 600, isOnce: false });
    for (const text of ["stall=", "stall=x", "", "constructor", "stall=-1"])
      expect(findFault(text, FAULTS)).toBeUndefined();
  });
});

describe("faults before the answer", () => {
  test("the fault `429` names the seconds", async () => {
    const response = await ask(await start(), "hi", { model: "sandbox-chat:429=7" });
    expect([response.status, response.headers.get("retry-after")]).toEqual([429, "7"]);
  });

  test("with the faults `500`, `503`, `401` and `403`, the sandbox answers with error objects", async () => {
    const sandbox = await start();
    for (const status of [500, 503, 401, 403]) {
      expect(await refusalOf(ask(sandbox, "hi", { model: `sandbox-chat:${status}` }))).toMatchObject({
        status,
        param: null,
      });
    }
  });

  test("the fault `reset` closes the connection before the response headers", async () => {
    const sandbox = await start();
    await expect(ask(sandbox, "hi", { model: "sandbox-chat:reset" })).rejects.toThrow(/fetch failed/);
  });

  test("with the fault `slow-head`, the sandbox waits, then answers whole", async () => {
    const sandbox = await start();
    const startedAt = performance.now();
    const text = await (await ask(sandbox, SAY, { stream: true, model: "sandbox-chat:slow-head=1" })).text();
    expect(performance.now() - startedAt).toBeGreaterThan(900);
    expect(textOf(chunksOf(text))).toBe(SAID);
  });
});

describe("faults in the answer", () => {
  test("the `cut` fault drops the connection between events of a stream, or halfway through a non-streamed body", async () => {
    const sandbox = await start();
    const stream = await ask(sandbox, SAY, { stream: true, model: "sandbox-chat:cut=3" });
    await expect(stream.text()).rejects.toThrow(/terminated/);
    await expect((await ask(sandbox, SAY, { model: "sandbox-chat:cut" })).json()).rejects.toThrow(/terminated/);
  });

  test("with the fault `stall`, the sandbox goes silent after the requested number of text chunks", async () => {
    const response = await ask(await start(), SAY, { stream: true, model: "sandbox-chat:stall=2" });
    let text = "";
    const decoder = new TextDecoder();
    for await (const part of response.body ?? []) {
      text += decoder.decode(part, { stream: true });
      if (text.includes('"content":" two')) break;
    }
    expect(chunksOf(text)).toHaveLength(3);
  });

  test("the faults `length` and `content-filter` end an answer early with their finish_reason", async () => {
    const sandbox = await start();
    for (const [fault, reason] of [
      ["length=2", "length"],
      ["content-filter=2", "content_filter"],
    ] as const) {
      const response = await ask(sandbox, SAY, { stream: true, model: `sandbox-chat:${fault}` });
      const chunks = chunksOf(await response.text());
      expect([textOf(chunks), chunks.at(-1)?.choices[0]?.finish_reason]).toEqual(["one two three", reason]);
    }
  });
});
