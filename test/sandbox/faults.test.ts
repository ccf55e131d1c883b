import { describe, expect, test } from "vitest";
import { FAULTS, type FaultName, readFault } from "../../src/sandbox/faults.ts";
import { recordingLog } from "../support/log.ts";
import { ask, chunksOf, contentOf, refusalOf, start, textOf } from "./sandbox.ts";

const SAY = "say: one two three four five six seven eight";
const SAID = SAY.slice("say: ".length);

describe("asking for a fault", () => {
  test("by model suffix, by header, and in words", async () => {
    const sandbox = await start();
    const refusals = [
      ask(sandbox, "hi", { model: "sandbox-chat:503" }),
      ask(sandbox, "hi", {}, { "x-sandbox-fault": "503" }),
      ask(sandbox, "Please, sandbox fault: 503. Thank you"),
    ];
    for (const refusal of refusals) expect(await refusalOf(refusal)).toMatchObject({ status: 503, code: "overloaded" });
  });

  test("an unknown name is refused with the names there are; a person who mistypes gets the list", async () => {
    const sandbox = await start();
    const refusal = await refusalOf(ask(sandbox, "hi", { model: "sandbox-chat:stal" }));
    expect(refusal).toMatchObject({
      status: 400,
      code: "unknown_fault",
      param: "model",
      message: expect.stringContaining("stall-keepalive"),
    });
    expect(await contentOf(ask(sandbox, "sandbox fault: stal"))).toContain("`stall-keepalive`");
    expect(await contentOf(ask(sandbox, "sandbox faults"))).toContain("`stall-keepalive`");
  });

  test("what is to be said is never read as a fault", async () => {
    const sandbox = await start();
    expect(await contentOf(ask(sandbox, "say: sandbox fault: 500"))).toBe("sandbox fault: 500");
  });

  test("a spoken fault alone has something to break, with an echo it breaks the echo", async () => {
    const sandbox = await start();
    expect((await contentOf(ask(sandbox, "sandbox fault: usage-missing"))).length).toBeGreaterThan(200);
    expect(await contentOf(ask(sandbox, "sandbox fault: length=2 say: a b c d e f"))).toBe("a b c");
  });

  test("what was asked for in a paragraph before the last is past", async () => {
    const sandbox = await start();
    expect(await contentOf(ask(sandbox, "sandbox fault: html\n\nhello there"))).toMatch(/^Hello!/);
    expect(await refusalOf(ask(sandbox, "sandbox fault: html\n\nsandbox fault: 503"))).toMatchObject({ status: 503 });
    expect(await contentOf(ask(sandbox, "sandbox fault: 500\n\nsandbox faults"))).toContain("`stall-keepalive`");
    expect(await contentOf(ask(sandbox, "sandbox fault: 500\n\nsay: a\n\nb"))).toBe("a\n\nb");
  });

  test("-once is met by the first of two like requests only, each time anew", async () => {
    const sandbox = await start();
    const model = "sandbox-chat:500-once";
    const statuses: number[] = [];
    for (const words of ["a", "a", "b", "b", "a"]) statuses.push((await ask(sandbox, words, { model })).status);
    expect(statuses).toEqual([500, 200, 500, 200, 500]);
  });

  test("arguments are bounded", () => {
    expect(readFault("stall=999999", null)).toEqual({ name: "stall", argument: 600, isOnce: false });
    for (const text of ["stall=", "stall=x", "", "constructor", "stall=-1"])
      expect(() => readFault(text, null)).toThrow(/There is no fault/);
  });

  test("every fault can be asked for, streaming and whole, and the sandbox lives on", async () => {
    const { log, lines } = recordingLog();
    const sandbox = await start({ log });
    const leave = new AbortController();
    const open = (Object.keys(FAULTS) as FaultName[]).flatMap((name) =>
      [true, false].map((stream) =>
        fetch(`${sandbox.url}/v1/chat/completions`, {
          method: "POST",
          headers: { authorization: "Bearer sk-sandbox-all", "content-type": "application/json" },
          body: JSON.stringify({ model: `sandbox-chat:${name}=1`, stream, messages: [{ role: "user", content: SAY }] }),
          signal: leave.signal,
        }).then(
          (response) => response.status,
          () => "cut",
        ),
      ),
    );
    const answers = await Promise.all(open);
    leave.abort();
    expect(new Set(answers)).toEqual(new Set([200, 401, 403, 429, 500, 503, "cut"]));
    expect(await contentOf(ask(sandbox, "say: alive"))).toBe("alive");
    expect(lines.filter((line) => Number(line["level"]) >= 40)).toEqual([]);
  });
});

describe("faults before the answer", () => {
  test("429 names the seconds, 429-date a date, 429-bare nothing", async () => {
    const sandbox = await start();
    const after = async (fault: string) => {
      const response = await ask(sandbox, "hi", { model: `sandbox-chat:${fault}` });
      expect(response.status).toBe(429);
      return response.headers.get("retry-after");
    };
    const askedAt = Date.now();
    expect(await after("429=7")).toBe("7");
    expect(await after("429-bare")).toBeNull();
    expect(Date.parse((await after("429-date=5")) ?? "")).toBeGreaterThanOrEqual(askedAt + 5000);
  });

  test("500, 503, 401 and 403 are error objects", async () => {
    const sandbox = await start();
    for (const status of [500, 503, 401, 403]) {
      expect(await refusalOf(ask(sandbox, "hi", { model: `sandbox-chat:${status}` }))).toMatchObject({
        status,
        param: null,
      });
    }
  });

  test("reset closes the connection without a head", async () => {
    const sandbox = await start();
    await expect(ask(sandbox, "hi", { model: "sandbox-chat:reset" })).rejects.toThrow(/fetch failed/);
  });

  test("slow-head and slow-first-token wait, then answer whole", async () => {
    const sandbox = await start();
    for (const fault of ["slow-head=0", "slow-first-token=0"]) {
      const text = await (await ask(sandbox, SAY, { stream: true, model: `sandbox-chat:${fault}` })).text();
      expect(textOf(chunksOf(text))).toBe(SAID);
    }
    const startedAt = performance.now();
    const response = await ask(sandbox, SAY, { stream: true, model: "sandbox-chat:slow-first-token=1" });
    await response.body?.getReader().read();
    expect(performance.now() - startedAt).toBeGreaterThan(900);
  });
});
