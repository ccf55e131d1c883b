import { type AddressInfo, createServer, type Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { body, events, json, startFaultServer, stream } from "../support/fault-server.ts";
import { connect, failureOf, ignoring, KEY, open, readAnswer, request } from "../support/gateway-client.ts";

const once = { limits: { attempts: 1 } };

describe("the gateway", () => {
  test("a gateway whose port is closed is unreachable, and the error says where to look", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    const failure = await failureOf(connect(`http://127.0.0.1:${port}`, once).streamChat(request, open, ignoring));
    expect(failure).toMatchObject({
      kind: "unreachable",
      message: "The gateway cannot be reached: nothing listens at its address (ECONNREFUSED).",
    });
  });

  test("a gateway that does not speak TLS is unreachable over https", async () => {
    const { url } = await startFaultServer(json(200, {}));
    const failure = await failureOf(connect(url.replace("http:", "https:"), once).streamChat(request, open, ignoring));
    expect(failure.kind).toBe("unreachable");
  });

  test("a gateway that drops the connection is unreachable", async () => {
    const { url } = await startFaultServer((response) => response.socket?.destroy());
    const failure = await failureOf(connect(url, once).streamChat(request, open, ignoring));
    expect(failure).toMatchObject({ kind: "unreachable", message: expect.stringContaining("closed the connection") });
  });

  test("an abort also works while the connection is being made", async () => {
    // A server that accepts connections and never completes the TLS handshake.
    const arrived = Promise.withResolvers<Socket>();
    const server = createServer((socket) => arrived.resolve(socket.on("error", () => {})));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const controller = new AbortController();
    const reason = new Error("stopped");
    const answer = connect(`https://127.0.0.1:${port}`, once).streamChat(request, controller.signal, ignoring);
    answer.catch(() => {});
    const socket = await arrived.promise;
    controller.abort(reason);
    await expect(answer).rejects.toBe(reason);
    socket.destroy();
    server.close();
  });
});

describe("a redirect", () => {
  test("the client does not follow a redirect, so the key goes nowhere else", async () => {
    const elsewhere = await startFaultServer(events(stream("stolen")));
    const { url } = await startFaultServer((response) => {
      response.writeHead(307, { location: `${elsewhere.url}/v1/chat/completions` });
      response.end();
    });
    const { error } = await readAnswer(connect(url), request, open);
    expect(error).toMatchObject({ kind: "malformed", status: 307, message: expect.stringContaining("redirect") });
    expect(elsewhere.received).toEqual([]);
  });
});

describe("the body of an error", () => {
  test("the client reads the body of an error only for a limited time", async () => {
    const { url, received } = await startFaultServer((response) => {
      response.writeHead(400, { "content-type": "text/plain" });
      response.write("so far");
    });
    const gateway = connect(url, { limits: { errorBodyMs: 50 } });
    const failure = await failureOf(gateway.streamChat(request, open, ignoring));
    expect(failure).toMatchObject({ kind: "rejected", status: 400, message: expect.stringContaining("so far") });
    await received[0]?.closed;
  });

  test("the client reads the body of an error only up to a limit", async () => {
    const { url, received } = await startFaultServer((response) => {
      response.writeHead(400, { "content-type": "text/plain" });
      const more = (error?: Error | null): void => {
        if (!error && !response.destroyed) response.write("x ".repeat(30_000), more);
      };
      more();
    });
    expect(await failureOf(connect(url).streamChat(request, open, ignoring))).toMatchObject({ kind: "rejected" });
    await received[0]?.closed;
  });

  test("the body of an error never brings the key into the client's error", async () => {
    for (const text of [`no ${KEY}`, `{"error":"no ${KEY}"}`, `{"error":{"message":"Bearer ${KEY}"}}`]) {
      const { url } = await startFaultServer(body(401, "application/json", text));
      const failure = await failureOf(connect(url).streamChat(request, open, ignoring));
      expect(`${failure.message} ${failure.stack} ${JSON.stringify(failure)}`).not.toContain(KEY);
    }
  });

  test("reading the body of an error aborts with the signal's reason", async () => {
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const { url } = await startFaultServer((response) => {
      response.writeHead(400);
      response.write("so far", () => begin());
    });
    const controller = new AbortController();
    const reason = new Error("stopped");
    const answer = connect(url).streamChat(request, controller.signal, ignoring);
    answer.catch(() => {});
    await begun;
    controller.abort(reason);
    await expect(answer).rejects.toBe(reason);
  });
});
