import { describe, expect, test } from "vitest";
import type { CallOptions, Fallback } from "../../src/gateway/client.ts";
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

/** Two gateways, the first with scripted responses, and the requests that each received. */
async function setUp(first: Answer[], second: Answer[] = [good], fallbackModel?: string) {
  const [one, other] = [await startFaultServer(...first), await startFaultServer(...second)];
  const fallback = { baseUrl: other.url, apiKey: "key-of-the-second" };
  const gateway = connect(one.url, { limits: LIMITS, second: fallback, fallbackModel });
  const fallbacks: Array<Fallback | undefined> = [];
  const ask = (options: CallOptions = {}) =>
    readAnswer(gateway, request, open, { ...options, onFallback: (fallback) => fallbacks.push(fallback) });
  const modelsOf = ({ received }: typeof one) => received.map(({ json }) => (json as { model: string }).model);
  return { one, other, gateway, fallbacks, ask, asked: () => [modelsOf(one), modelsOf(other)] };
}

describe("a fallback to the second gateway", () => {
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
    test(`the second gateway answers if the first returns ${name}`, async () => {
      const { ask, other, fallbacks } = await setUp([answer]);
      expect(await ask()).toMatchObject({ text: "Hello", error: undefined });
      expect(fallbacks).toEqual([{ model: "m", isSecondGateway: true, because }]);
      expect(other.received).toHaveLength(1);
    });
  }

  test("the second gateway gets its own key, and neither key nor headers of the first gateway", async () => {
    const { ask, one, other } = await setUp([drop]);
    await ask();
    expect(other.received[0]?.headers.authorization).toBe("Bearer key-of-the-second");
    expect(one.received[0]?.headers.authorization).not.toContain("second");
  });

  test("the client does not use the second gateway while the first answers or rejects permanently", async () => {
    const { ask, other } = await setUp([refusal(400, "no"), refusal(401, "no"), refusal(404, "no"), good]);
    for (const status of [400, 401, 404]) expect((await ask()).error).toMatchObject({ status });
    expect(await ask()).toMatchObject({ text: "Hello" });
    expect(other.received).toEqual([]);
  });

  test("the client does not use the second gateway once the first has started to answer, so no answer comes twice", async () => {
    const delta = { tool_calls: [{ index: 0, id: "call_1", function: { name: "look", arguments: "" } }] };
    const begun = [
      cut(ROLE, words("Hel")),
      events(words("Hel"), event({ error: "busy" })),
      hanging(words("Hel")),
      cut(event({ choices: [{ index: 0, delta }] })),
    ];
    for (const answer of begun) {
      const { ask, other, fallbacks } = await setUp([answer]);
      expect((await ask()).error).toBeDefined();
      expect(other.received).toEqual([]);
      expect(fallbacks).toEqual([]);
    }
  });

  test("the client does not use the second gateway after the user stopped the answer", async () => {
    const { gateway, one, other } = await setUp([hanging(ROLE)]);
    const stop = new AbortController();
    const reading = readAnswer(gateway, request, stop.signal);
    while (one.received.length === 0) await new Promise(setImmediate);
    stop.abort("stopped");
    expect((await reading).error).toBe("stopped");
    expect(other.received).toEqual([]);
  });
});

describe("a fallback to a second model", () => {
  test("the client tries a second model before the second gateway", async () => {
    const { ask, asked, fallbacks } = await setUp([rateLimit(), good], [good], "small");
    expect(await ask()).toMatchObject({ text: "Hello" });
    expect(asked()).toEqual([["m", "small"], []]);
    expect(fallbacks).toEqual([{ model: "small", isSecondGateway: false, because: "rate-limited" }]);
  });

  test("the client does not try a second model of an unreachable gateway", async () => {
    const { ask, asked } = await setUp([drop], [good], "small");
    expect(await ask()).toMatchObject({ text: "Hello" });
    expect(asked()).toEqual([["m", "m"], ["m"]]);
  });

  test("the second gateway uses its second model if it lacks the first model", async () => {
    const { ask, asked, fallbacks } = await setUp([drop], [refusal(404, "no such model"), good], "small");
    expect(await ask()).toMatchObject({ text: "Hello" });
    expect(asked()[1]).toEqual(["m", "small"]);
    expect(fallbacks.at(-1)).toEqual({ model: "small", isSecondGateway: true, because: "unreachable" });
  });

  test("the client does not use a second model that the asker is not allowed to use", async () => {
    const { ask, asked } = await setUp([rateLimit()], [good], "small");
    expect(await ask({ mayAsk: (model) => model !== "small" })).toMatchObject({ text: "Hello" });
    expect(asked()).toEqual([["m"], ["m"]]);
  });
});

describe("a failure of every fallback", () => {
  test("the client retries the first gateway as patiently as without fallbacks", async () => {
    const { ask, asked, fallbacks } = await setUp(
      [rateLimit({ "retry-after": "0.1" }), good],
      [refusal(401, "no key")],
    );
    expect(await ask()).toMatchObject({ text: "Hello", error: undefined });
    expect(asked()).toEqual([["m", "m"], ["m"]]);
    expect(fallbacks.at(-1)).toBeUndefined();
  });

  test("the client reports the first gateway's error", async () => {
    const { ask } = await setUp([rateLimit({ "retry-after": "600" })], [refusal(401, "no key")]);
    expect((await ask()).error).toMatchObject({ kind: "rate-limited" });
  });

  test("all attempts of a call share one time limit for the start of the answer", async () => {
    const [one, other] = [await startFaultServer(() => {}), await startFaultServer(() => {})];
    const limits = { firstTokenMs: 200, firstTokenTotalMs: 300 };
    const second = { baseUrl: other.url, apiKey: "key-of-the-second" };
    const gateway = connect(one.url, { limits, second, fallbackModel: "small" });
    expect((await readAnswer(gateway, request, open)).error).toMatchObject({ kind: "stalled" });
    // There is time for only two of the four attempts: each gateway with two models.
    expect(one.received.length + other.received.length).toBeLessThan(4);
  });
});

describe("a fallback to the second gateway for images", () => {
  const picture = { model: "m", prompt: "a fox" };
  const failing = async (answer: Answer) => {
    const { gateway, other } = await setUp([answer]);
    await gateway.generateImage(picture, open).catch(() => {});
    return other.received.map(({ path }) => path);
  };

  test("the second gateway creates an image if the first is down or at its limit", async () => {
    for (const answer of [rateLimit(), refusal(503, "busy"), refusal(501, "no")]) {
      expect(await failing(answer)).toEqual(["/v1beta/models/m:generateContent"]);
    }
  });

  test("the second gateway creates no image if the first may already have created it", async () => {
    // After a proxy's timeout or a closed connection, it is unknown what the gateway did.
    for (const answer of [body(200, "application/json", '{"candidates":[]}'), refusal(504, "late"), drop]) {
      expect(await failing(answer)).toEqual([]);
    }
  });
});
