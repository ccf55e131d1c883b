import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { recordingLog, silent } from "../../lab/support/log.ts";
import { startSandbox } from "../../src/sandbox/server.ts";
import { ask, contentOf, JSON_HEADERS, post, refusalOf, start } from "./sandbox.ts";

describe("the server of the sandbox", () => {
  test("the sandbox answers an unknown path with 404, the error object and the known paths", async () => {
    const sandbox = await start();
    for (const path of ["/", "/v1", "/v2/models", "/v1/chat/completions/", "/v1/models/a/b", "/chat/completions"]) {
      expect(await refusalOf(fetch(sandbox.url + path))).toMatchObject({
        status: 404,
        code: "unknown_path",
        message: expect.stringMatching(
          /^There is nothing at GET \/.*\/v1\/models, .*\/v1\/chat\/completions .*:generateContent/,
        ),
        param: null,
      });
    }
  });

  test.each([
    ["GET", "/v1/chat/completions", "POST"],
    ["DELETE", "/v1/models", "GET, HEAD"],
    ["GET", "/v1beta/models/sandbox-image:generateContent", "POST"],
    ["PUT", "/v1/models/sandbox-image:generateContent", "POST"],
  ])("the sandbox answers %s %s with 405 and the allowed methods", async (method, path, allowed) => {
    const sandbox = await start();
    const response = await fetch(sandbox.url + path, { method });
    expect([response.status, response.headers.get("allow")]).toEqual([405, allowed]);
    expect(await response.json()).toMatchObject({
      error: { type: "invalid_request_error", code: "method_not_allowed" },
    });
  });

  test("the sandbox answers HEAD like GET, without the body", async () => {
    const sandbox = await start();
    const headers = { authorization: "Bearer sk-sandbox-all" };
    const response = await fetch(`${sandbox.url}/v1/models`, { method: "HEAD", headers });
    expect([response.status, await response.text()]).toEqual([200, ""]);
    expect((await fetch(`${sandbox.url}/v1/chat/completions`, { method: "HEAD" })).status).toBe(405);
  });

  test("the sandbox accepts a request with the whole address, as through a proxy", async () => {
    const { url } = await start();
    const status = await new Promise((resolve, reject) => {
      const options = { port: new URL(url).port, path: `${url}/healthz` };
      httpRequest(options, (response) => resolve(response.resume().statusCode))
        .on("error", reject)
        .end();
    });
    expect(status).toBe(200);
  });

  test("every error body has type, code, message and param, and nothing else", async () => {
    const sandbox = await start();
    const url = `${sandbox.url}/v1/chat/completions`;
    const refusals = [
      fetch(`${sandbox.url}/nothing`),
      fetch(url, { method: "POST" }),
      post(url, "{"),
      post(url, {}),
      ask(sandbox, "sandbox fault: 500"),
      ask(sandbox, "sandbox fault: 429"),
      ask(sandbox, "hi", { model: "gone" }),
    ];
    for (const refusal of refusals) {
      const response = await refusal;
      const { error, ...rest } = (await response.json()) as { error: Record<string, unknown> };
      expect(response.headers.get("content-type")).toMatch(/^application\/json/);
      expect(rest).toEqual({});
      expect(Object.keys(error)).toEqual(["type", "code", "message", "param"]);
      expect([typeof error["type"], typeof error["code"], typeof error["message"]]).toEqual([
        "string",
        "string",
        "string",
      ]);
      expect(error["param"] === null || typeof error["param"] === "string").toBe(true);
    }
  });

  test.each([true, false])("the sandbox stops generating if the caller disconnects (stream: %s)", async (stream) => {
    const begun = Promise.withResolvers<void>();
    const stopped = Promise.withResolvers<void>();
    const write = (line: string) => {
      if (line.includes("sandbox completion")) begun.resolve();
      if (line.includes("the caller left")) stopped.resolve();
    };
    const sandbox = await start({ log: pino({ level: "debug" }, { write }) });
    const leave = new AbortController();
    // At this speed the answer would take hours.
    const answer = fetch(`${sandbox.url}/v1/chat/completions`, {
      method: "POST",
      headers: JSON_HEADERS,
      body: JSON.stringify({
        model: "sandbox-chat:speed=1",
        stream,
        messages: [{ role: "user", content: "count to 9000" }],
      }),
      signal: leave.signal,
    });
    const text = answer.then((response) => response.text());
    const left = expect(text).rejects.toThrow(/abort/);
    await begun.promise;
    leave.abort();
    await Promise.all([stopped.promise, left]);
  });

  test("the sandbox logs no failure for a caller that disconnects in the middle of its body", async () => {
    const { log, lines } = recordingLog();
    const sandbox = await start({ log });
    const { port } = new URL(sandbox.url);
    const socket = connect(Number(port), "127.0.0.1");
    const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-sandbox-all\r\ncontent-type: application/json\r\ncontent-length: 100\r\nexpect: 100-continue\r\n\r\n`;
    // The sandbox sends 100 Continue only after it has started to handle the request.
    await new Promise<void>((resolve) => {
      socket.once("data", () => resolve());
      socket.write(head);
    });
    await new Promise<void>((resolve) => {
      socket.once("close", () => resolve());
      socket.resetAndDestroy();
    });
    expect(await contentOf(ask(sandbox, "say: still here"))).toBe("still here");
    await sandbox.close();
    expect(lines.filter((line) => Number(line["level"]) >= 40)).toEqual([]);
  });

  test("the sandbox closes while streams are open", async () => {
    const sandbox = await start({ tokensPerSecond: 1 });
    const response = await ask(sandbox, "count to 900", { stream: true });
    await sandbox.close();
    await expect(response.text()).rejects.toThrow(/terminated/);
  });

  test("starting the sandbox rejects if its port is in use", async () => {
    const { url } = await start();
    const options = { host: "127.0.0.1", port: Number(new URL(url).port), log: silent };
    await expect(startSandbox(options)).rejects.toThrow(/EADDRINUSE/);
  });

  test("the sandbox's log contains neither message text nor keys", async () => {
    const { log, lines } = recordingLog();
    const sandbox = await start({ log });
    await contentOf(ask(sandbox, "say: canary-text"));
    await refusalOf(ask(sandbox, "canary-text", { foo: 1 }, { authorization: "Bearer sk-canary-key" }));
    expect(lines.length).toBeGreaterThan(0);
    expect(JSON.stringify(lines)).not.toMatch(/canary/);
  });

  test("a connection stays open after a refusal", async () => {
    const sandbox = await start();
    const socketPorts = new Set<number | undefined>();
    const { Agent } = await import("node:http");
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (const body of ["{", "{}", "[]"]) {
      await new Promise<void>((resolve, reject) => {
        const call = httpRequest(
          `${sandbox.url}/v1/chat/completions`,
          { method: "POST", headers: JSON_HEADERS, agent },
          (response) => {
            socketPorts.add(response.socket.localPort);
            response.resume().on("end", resolve);
          },
        );
        call.on("error", reject).end(body);
      });
    }
    agent.destroy();
    expect(socketPorts.size).toBe(1);
  });
});
