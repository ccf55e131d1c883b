import { describe, expect, test } from "vitest";
import type { RetryNotice } from "../../src/gateway/client.ts";
import {
  type Answer,
  cut,
  DONE,
  drop,
  event,
  events,
  FINISH,
  good,
  hanging,
  ROLE,
  rateLimit,
  refusal,
  startFaultServer,
  words,
} from "../support/fault-server.ts";
import { connect, failureOf, ignoring, open, readAnswer, request } from "../support/gateway-client.ts";

describe("a failure before the first token", () => {
  const passing: Array<[string, Answer]> = [
    ["429 without Retry-After", rateLimit()],
    ["500", refusal(500, "oops")],
    ["502", refusal(502, "oops")],
    ["503", refusal(503, "oops")],
    ["529", refusal(529, "oops")],
    ["a connection that is dropped", drop],
    ["a connection that is cut behind the role chunk", cut(ROLE)],
    ["an error event behind the role chunk", events(ROLE, event({ error: { message: "busy" } }))],
    ["an answer that ends behind the role chunk", events(ROLE)],
  ];
  for (const [name, answer] of passing) {
    test(`the client retries a failure before the first token: ${name}`, async () => {
      const { url, received } = await startFaultServer(answer, good);
      const notices: RetryNotice[] = [];
      const onRetry = (notice: RetryNotice) => notices.push(notice);
      expect(await readAnswer(connect(url), request, open, { onRetry })).toMatchObject({
        text: "Hello",
        error: undefined,
      });
      expect(received).toHaveLength(2);
      expect(notices).toMatchObject([{ error: { name: "GatewayError" } }]);
    });
  }

  test("the client retries missing response headers", async () => {
    const { url, received } = await startFaultServer(() => {}, good);
    const gateway = connect(url, { limits: { firstTokenMs: 300 } });
    expect(await readAnswer(gateway, request, open)).toMatchObject({ text: "Hello", error: undefined });
    expect(received).toHaveLength(2);
    await received[0]?.closed;
  });

  test("the client retries a missing first token", async () => {
    const { url, received } = await startFaultServer(hanging(ROLE), good);
    const gateway = connect(url, { limits: { firstTokenMs: 300, idleMs: 1 } });
    expect(await readAnswer(gateway, request, open)).toMatchObject({ text: "Hello", error: undefined });
    expect(received).toHaveLength(2);
  });

  test("the client reports the last failure after three attempts", async () => {
    const { url, received } = await startFaultServer(refusal(500, "oops"));
    const { error } = await readAnswer(connect(url), request, open);
    expect(error).toMatchObject({ kind: "overloaded", status: 500 });
    expect(received).toHaveLength(3);
  });

  for (const status of [400, 401, 403, 404, 413, 422, 501]) {
    test(`the client does not retry a failure before the first token with status ${status}`, async () => {
      const { url, received } = await startFaultServer(refusal(status, "no"), good);
      const { error } = await readAnswer(connect(url), request, open);
      expect(error).toMatchObject({ kind: status === 401 || status === 403 ? "unauthorized" : "rejected", status });
      expect(received).toHaveLength(1);
    });
  }

  test("the client does not retry an answer without content", async () => {
    const { url, received } = await startFaultServer(events(DONE), good);
    expect((await readAnswer(connect(url), request, open)).error).toMatchObject({ kind: "malformed" });
    expect(received).toHaveLength(1);
  });
});

test("the client never retries a failure after the first token or the first fragment of a tool call", async () => {
  const delta = { tool_calls: [{ index: 0, id: "call_1", function: { name: "look", arguments: "" } }] };
  const begun = [
    cut(words("Hel")),
    events(words("Hel")),
    events(words("Hel"), event({ error: "busy" })),
    cut(event({ choices: [{ index: 0, delta }] })),
  ];
  for (const answer of begun) {
    const { url, received } = await startFaultServer(answer, good);
    expect((await readAnswer(connect(url), request, open)).error).toMatchObject({ kind: "interrupted" });
    expect(received).toHaveLength(1);
  }
});

describe("Retry-After", () => {
  test("the client waits for Retry-After in seconds and reports the wait", async () => {
    const { url } = await startFaultServer(rateLimit({ "retry-after": "0.3" }), good);
    const notices: RetryNotice[] = [];
    const startedMs = performance.now();
    const onRetry = (notice: RetryNotice) => notices.push(notice);
    expect(await readAnswer(connect(url), request, open, { onRetry })).toMatchObject({
      text: "Hello",
      error: undefined,
    });
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(300);
    expect(notices[0]?.waitMs).toBeGreaterThanOrEqual(300);
    expect(notices[0]?.error).toMatchObject({ kind: "rate-limited", retryAfterMs: 300 });
  });

  test("a call fails at once if Retry-After is longer than the call's limit, and its error names the wait and the model", async () => {
    const { url, received } = await startFaultServer(rateLimit({ "retry-after": "3600" }), good);
    const failure = await failureOf(connect(url).streamChat(request, open, ignoring));
    expect(failure).toMatchObject({
      kind: "rate-limited",
      status: 429,
      type: "rate_limit_error",
      code: "rate_limit_exceeded",
      retryAfterMs: 3_600_000,
    });
    expect(failure.message).toContain("model m");
    expect(failure.message).toContain("3600 s");
    expect(received).toHaveLength(1);
  });

  test("Retry-After pauses other calls of the same model, and no others", async () => {
    const { url, received } = await startFaultServer(rateLimit({ "retry-after": "3600" }), good);
    const gateway = connect(url);
    await failureOf(gateway.streamChat(request, open, ignoring));
    const failure = await failureOf(gateway.streamChat(request, open, ignoring));
    expect(failure).toMatchObject({ kind: "rate-limited" });
    expect(failure.retryAfterMs).toBeGreaterThan(3_500_000);
    expect(received).toHaveLength(1);
    const other = await readAnswer(gateway, { ...request, model: "other" }, open);
    expect(other).toMatchObject({ text: "Hello", error: undefined });
  });

  test("Retry-After delays calls that start in the meantime", async () => {
    const { url } = await startFaultServer(rateLimit({ "retry-after": "0.3" }), good);
    const gateway = connect(url);
    const started = Promise.withResolvers<void>();
    const startedMs = performance.now();
    const first = readAnswer(gateway, request, open, { onRetry: () => started.resolve() });
    await started.promise;
    const notices: RetryNotice[] = [];
    const second = readAnswer(gateway, request, open, { onRetry: (notice) => notices.push(notice) });
    expect(await second).toMatchObject({ text: "Hello", error: undefined });
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(300);
    expect(notices).toMatchObject([{ error: { kind: "rate-limited" } }]);
    expect(await first).toMatchObject({ text: "Hello", error: undefined });
  });

  test("the client waits for Retry-After only up to the limit for all waits of one call", async () => {
    const { url, received } = await startFaultServer(rateLimit({ "retry-after": "0.2" }));
    const gateway = connect(url, { limits: { maxRetryWaitMs: 300, attempts: 10 } });
    await failureOf(gateway.streamChat(request, open, ignoring));
    expect(received).toHaveLength(2);
  });
});

describe("waits without Retry-After", () => {
  test("waits without Retry-After are spread over a range that doubles, within limits", async () => {
    const { url } = await startFaultServer(refusal(500, "oops"));
    const limits = { attempts: 5, backoffMinMs: 0.5, backoffMaxMs: 8, breakerFailures: 1_000 };
    const gateway = connect(url, { limits });
    const waits: number[][] = [];
    for (let call = 0; call < 30; call++) {
      const own: number[] = [];
      await readAnswer(gateway, request, open, { onRetry: ({ waitMs }) => own.push(waitMs) });
      waits.push(own);
    }
    for (const own of waits) {
      for (const [index, ceilingMs] of [2, 4, 8, 8].entries()) {
        expect(own[index]).toBeGreaterThanOrEqual(0.5);
        expect(own[index]).toBeLessThanOrEqual(ceilingMs);
      }
    }
    expect(new Set(waits.map(([first]) => first)).size).toBeGreaterThan(10);
  });

  test("a call ends if there is no time for another wait", async () => {
    const { url, received } = await startFaultServer(refusal(500, "oops"));
    const gateway = connect(url, { limits: { totalMs: 2_000, backoffMinMs: 5_000, backoffMaxMs: 5_000 } });
    expect(await failureOf(gateway.streamChat(request, open, ignoring))).toMatchObject({ kind: "overloaded" });
    expect(received).toHaveLength(1);
  });
});

test("the client reads a Retry-After of thirty years as one hour", async () => {
  const { url } = await startFaultServer(rateLimit({ "retry-after": "1000000000" }));
  const gateway = connect(url);
  await failureOf(gateway.streamChat(request, open, ignoring));
  const failure = await failureOf(gateway.streamChat(request, open, ignoring));
  expect(failure).toMatchObject({ isPause: true });
  expect(failure.retryAfterMs).toBeLessThanOrEqual(3_600_000);
});

describe("a pause that is longer than a call waits", () => {
  const busy = rateLimit({ "retry-after": "9999999999" });

  test("a pause ends for everyone when a trial call succeeds", async () => {
    const { url, received } = await startFaultServer(busy, busy, good);
    const gateway = connect(url, { limits: { probeMs: 0 } });
    await failureOf(gateway.streamChat(request, open, ignoring));
    await failureOf(gateway.streamChat(request, open, ignoring));
    expect(await readAnswer(gateway, request, open)).toMatchObject({ text: "Hello", error: undefined });
    expect(await readAnswer(gateway, request, open)).toMatchObject({ text: "Hello", error: undefined });
    expect(received).toHaveLength(4);
  });

  test("a pause does not block a user's Retry, and ends for everyone when that is answered", async () => {
    const { url, received } = await startFaultServer(busy, good);
    const gateway = connect(url);
    await failureOf(gateway.streamChat(request, open, ignoring));
    await failureOf(gateway.streamChat(request, open, ignoring));
    expect(received).toHaveLength(1);
    expect(await readAnswer(gateway, request, open, { mustAsk: true })).toMatchObject({ text: "Hello" });
    expect(await readAnswer(gateway, request, open)).toMatchObject({ text: "Hello", error: undefined });
    expect(received).toHaveLength(3);
  });
});

test("the client ignores content after a finished answer's finish_reason", async () => {
  const { url } = await startFaultServer(events(words("Hello"), FINISH, event({ error: "late" })));
  expect(await readAnswer(connect(url), request, open)).toMatchObject({ text: "Hello", error: undefined });
});
