import { describe, expect, test } from "vitest";
import type { ChatCompletionChunk } from "../../src/gateway/chunks.ts";
import { DONE, events, FINISH, hanging, json, ROLE, startFaultServer, stream, words } from "../support/fault-server.ts";
import { connect, failureOf, KEY, open, readAnswer, request } from "../support/gateway-client.ts";
import { recordingLog } from "../support/log.ts";

const completion = {
  id: "chatcmpl-9",
  object: "chat.completion",
  created: 1,
  model: "answering-model",
  choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
};

describe("a streaming request", () => {
  test("is a POST of exactly the fields given, with stream true and the key as a Bearer", async () => {
    const { url, received } = await startFaultServer(events(stream("Hello")));
    await readAnswer(connect(url).streamChat({ ...request, temperature: 0.5 }, open));
    expect(received).toMatchObject([{ method: "POST", path: "/v1/chat/completions" }]);
    expect(received[0]?.json).toEqual({ ...request, temperature: 0.5, stream: true });
    expect(received[0]?.headers).toMatchObject({
      authorization: `Bearer ${KEY}`,
      "content-type": "application/json",
      "accept-encoding": "identity",
    });
  });

  test("yields a chunk before the next one is sent", async () => {
    const { promise: seen, resolve: see } = Promise.withResolvers<void>();
    const { url } = await startFaultServer(async (response, received) => {
      hanging(words("one"))(response, received);
      await seen;
      response.end(words("two") + FINISH + DONE);
    });
    const texts: string[] = [];
    for await (const { choices } of connect(url).streamChat(request, open)) {
      texts.push(choices[0]?.delta.content ?? "");
      see();
    }
    expect(texts).toEqual(["one", "two", ""]);
  });

  test("survives a consumer that is slower than the gateway may be", async () => {
    const { promise: seen, resolve: see } = Promise.withResolvers<void>();
    const { url } = await startFaultServer(async (response, received) => {
      hanging(words("one"))(response, received);
      await seen;
      response.end(words("two") + FINISH + DONE);
    });
    const answer = connect(url, { limits: { firstTokenMs: 1_000, idleMs: 1_000 } }).streamChat(request, open);
    await answer.next();
    // The silence is the consumer's own, and longer than the gateway's may be.
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    see();
    expect(await readAnswer(answer)).toMatchObject({ text: "two", error: undefined });
  });
});

describe("an abort", () => {
  test("throws the signal's reason and closes the connection while the answer comes", async () => {
    const { url, received } = await startFaultServer(hanging(words("Hello")));
    const controller = new AbortController();
    const reason = new Error("the message was deleted");
    const answer = connect(url).streamChat(request, controller.signal);
    await answer.next();
    const next = answer.next();
    controller.abort(reason);
    await expect(next).rejects.toBe(reason);
    await received[0]?.closed;
  });

  test("throws the signal's reason and closes the connection before the head of the answer has come", async () => {
    const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>();
    const { url, received } = await startFaultServer(() => arrive());
    const controller = new AbortController();
    const reason = new Error("stopped");
    const next = connect(url).streamChat(request, controller.signal).next();
    await arrived;
    controller.abort(reason);
    await expect(next).rejects.toBe(reason);
    await received[0]?.closed;
  });

  test("throws between two chunks that came together", async () => {
    const { url } = await startFaultServer(events(stream("a", "b", "c")));
    const controller = new AbortController();
    const seen: ChatCompletionChunk[] = [];
    const reading = (async () => {
      for await (const chunk of connect(url).streamChat(request, controller.signal)) {
        seen.push(chunk);
        controller.abort(new Error("enough"));
      }
    })();
    await expect(reading).rejects.toThrow("enough");
    expect(seen).toHaveLength(1);
  });

  test("that came before makes no call", async () => {
    const { url, received } = await startFaultServer(events(stream("Hello")));
    const reason = new Error("too late");
    await expect(connect(url).streamChat(request, AbortSignal.abort(reason)).next()).rejects.toBe(reason);
    expect(received).toEqual([]);
  });

  test("ends a wait for the next attempt", async () => {
    const { url } = await startFaultServer(json(500, {}));
    const controller = new AbortController();
    const reason = new Error("stopped");
    const gateway = connect(url, { limits: { backoffMinMs: 60_000, backoffMaxMs: 60_000 } });
    const onRetry = (): void => controller.abort(reason);
    await expect(gateway.streamChat(request, controller.signal, { onRetry }).next()).rejects.toBe(reason);
  });

  test("leaves no listener behind when the call is over", async () => {
    const { url } = await startFaultServer(events(stream("Hello")));
    const controller = new AbortController();
    let listeners = 0;
    const add = controller.signal.addEventListener.bind(controller.signal);
    const remove = controller.signal.removeEventListener.bind(controller.signal);
    controller.signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners += 1;
      add(...args);
    };
    controller.signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners -= 1;
      remove(...args);
    };
    await readAnswer(connect(url).streamChat(request, controller.signal));
    expect(listeners).toBe(0);
  });
});

test("Leaving the iterator closes the connection", async () => {
  const { url, received } = await startFaultServer(hanging(ROLE, words("Hello")));
  for await (const { choices } of connect(url).streamChat(request, open)) {
    expect(choices).toHaveLength(1);
    break;
  }
  await received[0]?.closed;
});

describe("the log of an answer", () => {
  test("has its id, its model, its size and its times, and never a word of it", async () => {
    const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
    const { url } = await startFaultServer(
      events(words("canary-text"), FINISH, `data: ${JSON.stringify({ choices: [], usage })}\n\n`, DONE),
    );
    const { log, lines } = recordingLog();
    await readAnswer(connect(url, { log }).streamChat(request, open));
    expect(lines).toMatchObject([
      {
        level: 30,
        id: "chatcmpl-7",
        model: "answering-model",
        requestedModel: "m",
        chars: 11,
        finishReason: "stop",
        usage,
        firstChunkMs: expect.any(Number),
        totalMs: expect.any(Number),
      },
    ]);
    expect(JSON.stringify(lines)).not.toContain("canary");
  });

  test("says why an answer broke off", async () => {
    const { url } = await startFaultServer(events(words("Hello")));
    const { log, lines } = recordingLog();
    await readAnswer(connect(url, { log }).streamChat(request, open));
    expect(lines).toMatchObject([{ id: "chatcmpl-7", kind: "interrupted", chars: 5 }]);
  });
});

test("Leaving ends a read that waits, also one that waits for a next attempt, and is logged", async () => {
  const { url, received } = await startFaultServer(hanging(words("Hello")));
  const { log, lines } = recordingLog();
  const answer = connect(url, { log }).streamChat(request, open);
  await answer.next();
  const waiting = answer.next();
  await answer.return();
  expect(await waiting).toEqual({ done: true, value: undefined });
  await received[0]?.closed;
  expect(lines).toMatchObject([{ kind: "left", chars: 5 }]);

  const failing = await startFaultServer(json(500, {}));
  const retries = connect(failing.url, { limits: { backoffMinMs: 1, backoffMaxMs: 1 } });
  const { promise: retried, resolve: onRetry } = Promise.withResolvers<unknown>();
  const again = retries.streamChat(request, open, { onRetry });
  const first = again.next();
  await retried;
  await again.return();
  expect(await first).toEqual({ done: true, value: undefined });
});

describe("a whole answer", () => {
  test("comes from a request without stream, and is logged without its text", async () => {
    const { url, received } = await startFaultServer(json(200, completion));
    const { log, lines } = recordingLog();
    expect(await connect(url, { log }).completeChat(request, open)).toEqual(completion);
    expect(received[0]?.json).toEqual(request);
    expect(lines).toMatchObject([{ id: "chatcmpl-9", model: "answering-model", chars: 5, finishReason: "stop" }]);
    expect(JSON.stringify(lines)).not.toContain("Hello");
  });

  test("is asked for again after a failure that passes", async () => {
    const { url, received } = await startFaultServer(json(503, {}), json(200, completion));
    expect(await connect(url).completeChat(request, open)).toEqual(completion);
    expect(received).toHaveLength(2);
  });

  test("larger than a body may be is refused", async () => {
    const { url } = await startFaultServer(json(200, completion));
    const failure = await failureOf(connect(url, { limits: { maxBodyBytes: 100 } }).completeChat(request, open));
    expect(failure).toMatchObject({ kind: "malformed", message: expect.stringContaining("100 bytes") });
  });

  test("that never comes ends with the time for the whole call", async () => {
    const { url } = await startFaultServer(() => {});
    const failure = await failureOf(connect(url, { limits: { totalMs: 50 } }).completeChat(request, open));
    expect(failure.kind).toBe("interrupted");
  });

  test("aborts with the signal's reason", async () => {
    const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>();
    const { url, received } = await startFaultServer(() => arrive());
    const controller = new AbortController();
    const reason = new Error("stopped");
    const answer = connect(url).completeChat(request, controller.signal);
    answer.catch(() => {});
    await arrived;
    controller.abort(reason);
    await expect(answer).rejects.toBe(reason);
    await received[0]?.closed;
  });
});

test("A request that breaks the interface's rules is not sent", async () => {
  const { url, received } = await startFaultServer(events(stream("Hello")));
  const gateway = connect(url);
  const bad = { ...request, temperature: 3 };
  expect(await failureOf(gateway.streamChat(bad, open).next())).toMatchObject({ kind: "rejected" });
  expect(await failureOf(gateway.completeChat(bad, open))).toMatchObject({ kind: "rejected" });
  expect(received).toEqual([]);
});
