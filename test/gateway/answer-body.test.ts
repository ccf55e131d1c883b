import { Agent } from "undici";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Answer, dispatchRequest } from "../../src/gateway/answer-body.ts";
import { body, type FaultServer, startFaultServer } from "../support/fault-server.ts";
import { open } from "../support/gateway-client.ts";

async function send(server: FaultServer, signal: AbortSignal = open): Promise<Answer> {
  const agent = new Agent();
  onTestFinished(() => agent.destroy());
  return dispatchRequest(agent, { origin: server.url, path: "/", method: "GET" }, signal);
}

/** Listens, and resolves with what was told. */
function listen({ body }: Answer): Promise<{ text: string; error: unknown }> {
  let text = "";
  return new Promise((resolve) => {
    body.listen({
      onData: (bytes) => (text += bytes.toString()),
      onEnd: () => resolve({ text, error: undefined }),
      onError: (error) => resolve({ text, error }),
    });
  });
}

describe("the body of an answer", () => {
  test("is told also when it came before somebody listened", async () => {
    const server = await startFaultServer(body(200, "text/plain", "hello"));
    const answer = await send(server);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await listen(answer)).toEqual({ text: "hello", error: undefined });
  });

  test("comes with status and headers of every kind of answer", async () => {
    const server = await startFaultServer(body(418, "text/plain", "tea"));
    const answer = await send(server);
    expect(answer).toMatchObject({ status: 418, headers: { "content-type": "text/plain" } });
    expect((await listen(answer)).text).toBe("tea");
  });

  test("tells nothing and closes the connection once it was left", async () => {
    const server = await startFaultServer((response) => {
      response.writeHead(200);
      response.write("hello");
    });
    const answer = await send(server);
    const told: unknown[] = [];
    const tell = (what: unknown): void => void told.push(what);
    answer.body.destroy();
    answer.body.destroy();
    answer.body.listen({ onData: () => tell("data"), onEnd: () => tell("end"), onError: tell });
    await server.received[0]?.closed;
    expect(told).toEqual([]);
  });

  test("that is drained closes the connection when there is too much of it", async () => {
    const server = await startFaultServer((response) => {
      response.writeHead(200);
      const more = (error?: Error | null): void => {
        if (!error && !response.destroyed) response.write("x".repeat(30_000), more);
      };
      more();
    });
    const answer = await send(server);
    answer.body.drain();
    await server.received[0]?.closed;
  });

  test("breaks off when the signal aborts", async () => {
    const server = await startFaultServer((response) => {
      response.writeHead(200);
      response.write("hello");
    });
    const controller = new AbortController();
    const answer = await send(server, controller.signal);
    const listening = listen(answer);
    controller.abort();
    expect((await listening).error).toBeInstanceOf(Error);
    await server.received[0]?.closed;
  });
});

test("A request whose signal has aborted is not made", async () => {
  const server = await startFaultServer(body(200, "text/plain", "hello"));
  const reason = new Error("too late");
  await expect(send(server, AbortSignal.abort(reason))).rejects.toBe(reason);
  expect(server.received).toEqual([]);
});
