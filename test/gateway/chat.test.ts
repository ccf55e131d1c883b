import { describe, expect, test } from "vitest";
import { recordingLog } from "../../lab/support/log.ts";
import type { ChatCompletionChunk } from "../../src/gateway/chunks.ts";
import { DONE, events, FINISH, hanging, json, startFaultServer, stream, words } from "../support/fault-server.ts";
import {
  beginAnswer,
  connect,
  failureOf,
  ignoring,
  KEY,
  open,
  readAnswer,
  request,
} from "../support/gateway-client.ts";

const completion = {
  id: "chatcmpl-9",
  object: "chat.completion",
  created: 1,
  model: "answering-model",
  choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
};

describe("a streaming request", () => {
  test("a streaming request is a POST of exactly the given fields, with stream true and the key as a Bearer", async () => {
    const { url, received } = await startFaultServer(events(stream("Hello")));
    await readAnswer(connect(url), { ...request, temperature: 0.5 }, open);
    expect(received).toMatchObject([{ method: "POST", path: "/v1/chat/completions" }]);
    expect(received[0]?.json).toEqual({ ...request, temperature: 0.5, stream: true });
    expect(received[0]?.headers).toMatchObject({
      authorization: `Bearer ${KEY}`,
      "content-type": "application/json",
      "accept-encoding": "identity",
    });
  });

  test("the client delivers a chunk before the gateway sends the next chunk", async () => {
    const { promise: seen, resolve: see } = Promise.withResolvers<void>();
    const { url } = await startFaultServer(async (response, received) => {
      hanging(words("one"))(response, received);
      await seen;
      response.end(words("two") + FINISH + DONE);
    });
    const texts: string[] = [];
    const onChunk = ({ choices }: ChatCompletionChunk) => {
      texts.push(choices[0]?.delta.content ?? "");
      see();
    };
    await connect(url).streamChat(request, open, { onChunk });
    expect(texts).toEqual(["one", "two", ""]);
  });

  test.each([events(stream("one", "two")), json(200, completion), events(words("one"))])(
    "a streaming request rejects with the error of its consumer, and is not retried",
    async (answer) => {
      const { url, received } = await startFaultServer(answer);
      const full = new Error("full");
      const fail = () => {
        throw full;
      };
      await expect(connect(url).streamChat(request, open, { onChunk: fail })).rejects.toBe(full);
      expect(received).toHaveLength(1);
    },
  );
});

describe("aborting a request", () => {
  test("an abort during the answer throws the signal's reason and closes the connection", async () => {
    const { url, received } = await startFaultServer(hanging(words("Hello")));
    const { log, lines } = recordingLog();
    const controller = new AbortController();
    const reason = new Error("the message was deleted");
    const answer = beginAnswer(connect(url, { log }), request, controller.signal);
    await answer.first;
    controller.abort(reason);
    await expect(answer.end).rejects.toBe(reason);
    await received[0]?.closed;
    expect(lines).toMatchObject([{ kind: "left", chars: 5 }]);
  });

  test("an abort before the response headers throws the signal's reason and closes the connection", async () => {
    const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>();
    const { url, received } = await startFaultServer(() => arrive());
    const controller = new AbortController();
    const reason = new Error("stopped");
    const answer = connect(url).streamChat(request, controller.signal, ignoring);
    await arrived;
    controller.abort(reason);
    await expect(answer).rejects.toBe(reason);
    await received[0]?.closed;
  });

  test("an abort throws between two chunks that arrived together", async () => {
    const { url } = await startFaultServer(events(stream("a", "b", "c")));
    const controller = new AbortController();
    const seen: ChatCompletionChunk[] = [];
    const onChunk = (chunk: ChatCompletionChunk) => {
      seen.push(chunk);
      controller.abort(new Error("enough"));
    };
    await expect(connect(url).streamChat(request, controller.signal, { onChunk })).rejects.toThrow("enough");
    expect(seen).toHaveLength(1);
  });

  test("a signal that is already aborted prevents the call", async () => {
    const { url, received } = await startFaultServer(events(stream("Hello")));
    const reason = new Error("too late");
    await expect(connect(url).streamChat(request, AbortSignal.abort(reason), ignoring)).rejects.toBe(reason);
    expect(received).toEqual([]);
  });

  test("an abort ends the wait for the next attempt", async () => {
    const { url } = await startFaultServer(json(500, {}));
    const controller = new AbortController();
    const reason = new Error("stopped");
    const gateway = connect(url, { limits: { backoffMinMs: 60_000, backoffMaxMs: 60_000 } });
    const onRetry = (): void => controller.abort(reason);
    await expect(gateway.streamChat(request, controller.signal, { ...ignoring, onRetry })).rejects.toBe(reason);
  });

  test("a finished call leaves no abort listener", async () => {
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
    await readAnswer(connect(url), request, controller.signal);
    expect(listeners).toBe(0);
  });
});

describe("the log of an answer", () => {
  test("the log of an answer has its id, model, size and times, and never its text", async () => {
    const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
    const { url } = await startFaultServer(
      events(words("canary-text"), FINISH, `data: ${JSON.stringify({ choices: [], usage })}\n\n`, DONE),
    );
    const { log, lines } = recordingLog();
    await readAnswer(connect(url, { log }), request, open);
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

  test("the log of an answer says why the answer was truncated", async () => {
    const { url } = await startFaultServer(events(words("Hello")));
    const { log, lines } = recordingLog();
    await readAnswer(connect(url, { log }), request, open);
    expect(lines).toMatchObject([{ id: "chatcmpl-7", kind: "interrupted", chars: 5 }]);
  });
});

test("a JSON answer to a streaming request is delivered as chunks and logged without its text", async () => {
  const { url } = await startFaultServer(json(200, completion));
  const { log, lines } = recordingLog();
  const { chunks, text, error } = await readAnswer(connect(url, { log }), request, open);
  expect({ text, error }).toEqual({ text: "Hello", error: undefined });
  expect(chunks.at(-1)?.usage).toEqual(completion.usage);
  expect(lines).toMatchObject([{ id: "chatcmpl-9", model: "answering-model", chars: 5, finishReason: "stop" }]);
  expect(JSON.stringify(lines)).not.toContain("Hello");
});

test("a call without streaming fails at the total timeout", async () => {
  const { url } = await startFaultServer(() => {});
  const failure = await failureOf(connect(url, { limits: { totalMs: 50 } }).listModels(open));
  expect(failure.kind).toBe("interrupted");
});

test("the client does not send a request that violates the interface", async () => {
  const { url, received } = await startFaultServer(events(stream("Hello")));
  const gateway = connect(url);
  const bad = { ...request, temperature: 3 };
  expect(await failureOf(gateway.streamChat(bad, open, ignoring))).toMatchObject({ kind: "rejected" });
  expect(received).toEqual([]);
});
