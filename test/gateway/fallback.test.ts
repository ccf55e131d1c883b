import { describe, expect, test } from "vitest";
import type { CallOptions, Detour } from "../../src/gateway/client.ts";
import { start as startSandbox } from "../sandbox/sandbox.ts";
import {
  type Answer,
  body,
  cut,
  DONE,
  drop,
  event,
  events,
  good,
  hanging,
  ROLE,
  rateLimit,
  refusal,
  startFaultServer,
  words,
} from "../support/fault-server.ts";
import { connect, open, readAnswer, request } from "../support/gateway-client.ts";

const LIMITS = { firstTokenMs: 300, idleMs: 300 };

/** Two gateways, of which the first answers as told; and what was asked of each. */
async function setUp(first: Answer[], second: Answer[] = [good], fallbackModel?: string) {
  const [one, other] = [await startFaultServer(...first), await startFaultServer(...second)];
  const fallback = { baseUrl: other.url, apiKey: "key-of-the-second" };
  const gateway = connect(one.url, { limits: LIMITS, second: fallback, fallbackModel });
  const detours: Array<Detour | undefined> = [];
  const ask = (options: CallOptions = {}) =>
    readAnswer(gateway, request, open, { ...options, onDetour: (detour) => detours.push(detour) });
  const modelsOf = ({ received }: typeof one) => received.map(({ json }) => (json as { model: string }).model);
  return { one, other, gateway, detours, ask, asked: () => [modelsOf(one), modelsOf(other)] };
}

describe("a second gateway is asked", () => {
  const downs: Array<[string, Answer, string]> = [
    ["429 with Retry-After", rateLimit({ "retry-after": "30" }), "rate-limited"],
    ["429 without", rateLimit(), "rate-limited"],
    ["500", refusal(500, "oops"), "overloaded"],
    ["503 with Retry-After", refusal(503, "oops", { "retry-after": "30" }), "overloaded"],
    ["402", refusal(402, "pay first"), "rejected"],
    ["501", refusal(501, "not implemented"), "rejected"],
    ["a connection that is dropped", drop, "unreachable"],
    ["an answer that ends before its first word", cut(ROLE), "interrupted"],
    ["silence", hanging(ROLE), "stalled"],
    ["a page of HTML", body(200, "text/html", "<html>Maintenance</html>"), "malformed"],
    ["an answer without a choice", events(DONE), "malformed"],
  ];
  for (const [name, answer, because] of downs) {
    test(`where the first brings ${name}`, async () => {
      const { ask, other, detours } = await setUp([answer]);
      expect(await ask()).toMatchObject({ text: "Hello", error: undefined });
      expect(detours).toEqual([{ model: "m", isSecondGateway: true, because }]);
      expect(other.received).toHaveLength(1);
    });
  }

  test("with its own key, and sees none of the first's", async () => {
    const { ask, one, other } = await setUp([drop]);
    await ask();
    expect(other.received[0]?.headers.authorization).toBe("Bearer key-of-the-second");
    expect(one.received[0]?.headers.authorization).not.toContain("second");
  });

  test("not at all while the first answers, or refuses for good", async () => {
    const { ask, other } = await setUp([refusal(400, "no"), refusal(401, "no"), refusal(404, "no"), good]);
    for (const status of [400, 401, 404]) expect((await ask()).error).toMatchObject({ status });
    expect(await ask()).toMatchObject({ text: "Hello" });
    expect(other.received).toEqual([]);
  });

  test("not once the first has begun to answer: no answer is given twice", async () => {
    const delta = { tool_calls: [{ index: 0, id: "call_1", function: { name: "look", arguments: "" } }] };
    const begun = [
      cut(ROLE, words("Hel")),
      events(words("Hel"), event({ error: "busy" })),
      hanging(words("Hel")),
      cut(event({ choices: [{ index: 0, delta }] })),
    ];
    for (const answer of begun) {
      const { ask, other, detours } = await setUp([answer]);
      expect((await ask()).error).toBeDefined();
      expect(other.received).toEqual([]);
      expect(detours).toEqual([]);
    }
  });

  test("not once the person has stopped the answer", async () => {
    const { gateway, one, other } = await setUp([hanging(ROLE)]);
    const stop = new AbortController();
    const reading = readAnswer(gateway, request, stop.signal);
    while (one.received.length === 0) await new Promise(setImmediate);
    stop.abort("stopped");
    expect((await reading).error).toBe("stopped");
    expect(other.received).toEqual([]);
  });
});

describe("a second model is asked", () => {
  test("before the second gateway is", async () => {
    const { ask, asked, detours } = await setUp([rateLimit(), good], [good], "small");
    expect(await ask()).toMatchObject({ text: "Hello" });
    expect(asked()).toEqual([["m", "small"], []]);
    expect(detours).toEqual([{ model: "small", isSecondGateway: false, because: "rate-limited" }]);
  });

  test("not of a gateway that cannot be reached", async () => {
    const { ask, asked } = await setUp([drop], [good], "small");
    expect(await ask()).toMatchObject({ text: "Hello" });
    expect(asked()).toEqual([["m", "m"], ["m"]]);
  });

  test("of the second gateway, where that does not have the first one's", async () => {
    const { ask, asked, detours } = await setUp([drop], [refusal(404, "no such model"), good], "small");
    expect(await ask()).toMatchObject({ text: "Hello" });
    expect(asked()[1]).toEqual(["m", "small"]);
    expect(detours.at(-1)).toEqual({ model: "small", isSecondGateway: true, because: "unreachable" });
  });

  test("not where the person who asks may not use it", async () => {
    const { ask, asked } = await setUp([rateLimit()], [good], "small");
    expect(await ask({ mayAsk: (model) => model !== "small" })).toMatchObject({ text: "Hello" });
    expect(asked()).toEqual([["m"], ["m"]]);
  });

  test("of the strict sandbox as well as of any other gateway", async () => {
    const sandbox = await startSandbox();
    const second = { baseUrl: sandbox.url, apiKey: "sk-sandbox-all" };
    const down = connect((await startFaultServer(rateLimit())).url, { second, fallbackModel: "sandbox-text" });
    const detours: Array<Detour | undefined> = [];
    const { error, text } = await readAnswer(down, request, open, { onDetour: (detour) => detours.push(detour) });
    expect(error).toBeUndefined();
    expect(text).not.toBe("");
    expect(detours.map((detour) => detour?.model)).toEqual(["sandbox-text", "m", "sandbox-text"]);
  });
});

describe("where nobody else answers", () => {
  test("the first is asked once more, as patiently as without the others", async () => {
    const { ask, asked, detours } = await setUp([rateLimit({ "retry-after": "1" }), good], [refusal(401, "no key")]);
    expect(await ask()).toMatchObject({ text: "Hello", error: undefined });
    expect(asked()).toEqual([["m", "m"], ["m"]]);
    expect(detours.at(-1)).toBeUndefined();
  });

  test("the error is the first one's", async () => {
    const { ask } = await setUp([rateLimit({ "retry-after": "600" })], [refusal(401, "no key")]);
    expect((await ask()).error).toMatchObject({ kind: "rate-limited" });
  });

  test("all of it together ends when an answer should have begun", async () => {
    const [one, other] = [await startFaultServer(() => {}), await startFaultServer(() => {})];
    const limits = { firstTokenMs: 200, firstTokenTotalMs: 300 };
    const second = { baseUrl: other.url, apiKey: "key-of-the-second" };
    const gateway = connect(one.url, { limits, second, fallbackModel: "small" });
    expect((await readAnswer(gateway, request, open)).error).toMatchObject({ kind: "stalled" });
    // There is time for two of the four: each gateway was to be asked for two models.
    expect(one.received.length + other.received.length).toBeLessThan(4);
  });
});

describe("a picture is drawn by the second gateway", () => {
  const picture = { model: "m", prompt: "a fox" };
  const failing = async (answer: Answer) => {
    const { gateway, other } = await setUp([answer]);
    await gateway.generateImage(picture, open).catch(() => {});
    return other.received.map(({ path }) => path);
  };

  test("where the first is down or at its limit", async () => {
    for (const answer of [rateLimit(), refusal(503, "busy"), refusal(501, "no")]) {
      expect(await failing(answer)).toEqual(["/v1beta/models/m:generateContent"]);
    }
  });

  test("not where it may have been drawn already", async () => {
    // A proxy that gave up, and a connection that ended, leave open what the gateway did.
    for (const answer of [body(200, "application/json", '{"candidates":[]}'), refusal(504, "late"), drop]) {
      expect(await failing(answer)).toEqual([]);
    }
  });
});
