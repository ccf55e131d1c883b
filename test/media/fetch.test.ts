import { describe, expect, test } from "vitest";
import { createGuardedFetch, type FileRequest, type GuardedFetchOptions } from "../../src/media/fetch.ts";
import { FileProblem } from "../../src/media/file-problem.ts";
import { type Answer, sendEndlessly, serveAnswers } from "../support/file-server.ts";

const never = new AbortController().signal;
const MIB = 1024 * 1024;

/** Fetches `/file` from a server with this response. */
async function setUp(answer: Answer, options: Partial<GuardedFetchOptions> = {}) {
  const server = await serveAnswers({ "/file": answer });
  const fetch = createGuardedFetch({ owner: "Slack", hosts: [], origins: [server.origin], ...options });
  const read = async (request: Partial<FileRequest> = {}, signal = never) => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of await fetch.open(`${server.origin}/file`, { maxBytes: MIB, ...request }, signal)) {
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString();
  };
  return { ...server, fetch, read };
}

/** Resolves to the problem with this URL if only these hosts are allowed. */
async function problemOf(url: string, options: Partial<GuardedFetchOptions> = {}): Promise<FileProblem> {
  const fetch = createGuardedFetch({ owner: "Slack", hosts: ["files.example.com"], origins: [], ...options });
  const error: unknown = await fetch.open(url, { maxBytes: MIB }, never).catch((error: unknown) => error);
  if (!(error instanceof FileProblem)) throw new Error(`Not a problem: ${String(error)}`);
  return error;
}

describe("createGuardedFetch", () => {
  test("the guarded fetch reads a file from a listed origin and sends the headers", async () => {
    const { read, requests } = await setUp((response) => response.end("bytes"));
    expect(await read({ headers: { authorization: "Bearer xoxb-secret" } })).toBe("bytes");
    expect(requests[0]?.headers).toMatchObject({
      authorization: "Bearer xoxb-secret",
      "accept-encoding": "identity",
    });
  });

  test.each([
    "https://evil.example/file",
    "https://files.example.com.evil.example/file",
    "https://evil-files.example.com/file",
    "https://files.example.com:8443/file",
    "http://files.example.com/file",
    "https://name:word@files.example.com/file",
    "https://files.example.com@evil.example/file",
    "file:///etc/passwd",
    "data:text/plain,x",
    "//files.example.com/file",
    "",
  ])("the guarded fetch sends no request to %j", async (url) => {
    const asked: string[] = [];
    const problem = await problemOf(url, { resolve: (hostname) => void asked.push(hostname) });
    expect(problem).toMatchObject({ kind: "foreign", message: "is not hosted by Slack" });
    expect(asked).toEqual([]);
  });

  test("the guarded fetch does not confuse a listed origin with a similar one", async () => {
    const { origin, requests } = await setUp((response) => response.end("bytes"));
    const { port } = new URL(origin);
    for (const url of [`http://localhost:${port}/file`, `http://127.0.0.2:${port}/file`, "http://127.0.0.1:1/file"]) {
      expect((await problemOf(url, { origins: [origin] })).kind).toBe("foreign");
    }
    expect(requests).toHaveLength(0);
  });

  test.each([
    ["a private address", "10.0.0.7", 4],
    ["this machine", "127.0.0.1", 4],
    ["the metadata of a cloud", "169.254.169.254", 4],
    ["a private address of IPv6", "fd00:ec2::254", 6],
    ["an address in disguise", "::ffff:169.254.169.254", 6],
  ])("the guarded fetch does not connect if a listed host resolves to %s", async (_, address, family) => {
    const problem = await problemOf("https://files.example.com/file", {
      resolve: (_, answer) =>
        answer(null, [
          { address: "93.184.216.34", family: 4 },
          { address, family },
        ]),
    });
    expect(problem.kind).toBe("private");
    expect(problem.message).not.toContain(address);
  });

  test("the guarded fetch resolves names with the system's resolver by default", async () => {
    expect((await problemOf("https://localhost/file", { hosts: ["localhost"] })).kind).toBe("private");
  });

  test.each(["https://127.0.0.1/file", "https://[::1]/file", "https://2130706433/file", "https://169.254.169.254/x"])(
    "the guarded fetch does not connect to %s, even if it is listed",
    async (url) => {
      expect((await problemOf(url, { hosts: [new URL(url).hostname] })).kind).toBe("private");
    },
  );

  test("a wildcard allows the hosts below a name, but not the name itself or names that only end like it", async () => {
    const hosts = ["*.slack.com"];
    const resolve: GuardedFetchOptions["resolve"] = (_, answer) => answer(null, [{ address: "10.0.0.1", family: 4 }]);
    expect((await problemOf("https://files.slack.com/a", { hosts, resolve })).kind).toBe("private");
    expect((await problemOf("https://slack.com/a", { hosts, resolve })).kind).toBe("foreign");
    expect((await problemOf("https://notslack.com/a", { hosts, resolve })).kind).toBe("foreign");
  });

  test("the guarded fetch takes a web page for a login page, unless the file can be a page", async () => {
    const { read } = await setUp((response) =>
      response.writeHead(200, { "content-type": "Text/HTML; charset=utf-8" }).end("<html>"),
    );
    await expect(read()).rejects.toMatchObject({ kind: "page", message: /sent a web page instead/ });
    expect(await read({ mayBePage: true })).toBe("<html>");
  });

  test.each([
    [401, "forbidden"],
    [403, "forbidden"],
    [404, "gone"],
    [410, "gone"],
    [206, "unavailable"],
    [500, "unavailable"],
  ])("the guarded fetch reports status %d as a problem of its kind", async (status, kind) => {
    const { read } = await setUp((response) => response.writeHead(status).end("words of the platform"));
    await expect(read()).rejects.toMatchObject({ kind, message: expect.stringContaining(String(status)) as unknown });
  });

  test("the guarded fetch accepts a file of exactly the allowed size, announced or not", async () => {
    for (const headers of [{ "content-length": 5 }, {}]) {
      const { read } = await setUp((response) => response.writeHead(200, headers).end("12345"));
      expect(await read({ maxBytes: 5 })).toBe("12345");
      const problem = { kind: "too-large", message: "is larger than 4 bytes" };
      await expect(read({ maxBytes: 4 })).rejects.toMatchObject(problem);
    }
  });

  test("the guarded fetch reads nothing of a file with an announced size above the limit", async () => {
    const { fetch, origin } = await setUp((response) => sendEndlessly(response, { "content-length": 2 ** 31 }));
    const opened = fetch.open(`${origin}/file`, { maxBytes: MIB }, never);
    await expect(opened).rejects.toMatchObject({ kind: "too-large" });
  });

  test("the guarded fetch times out if no bytes arrive", async () => {
    const { read } = await setUp((response) => response.writeHead(200).write("first"), { totalTimeoutMs: 100 });
    await expect(read()).rejects.toMatchObject({ kind: "late" });
  });

  test("the guarded fetch rejects with the caller's reason, before and during the bytes", async () => {
    const leaving = new AbortController();
    const { fetch, origin } = await setUp((response) => response.writeHead(200).write("first"));
    const bytes = await fetch.open(`${origin}/file`, { maxBytes: MIB }, leaving.signal);
    const reading = (async () => {
      for await (const _ of bytes) leaving.abort(new Error("I left."));
    })();
    await expect(reading).rejects.toThrow("I left.");
    await expect(fetch.open(`${origin}/file`, { maxBytes: MIB }, leaving.signal)).rejects.toThrow("I left.");
  });

  test("the guarded fetch closes the connection if the reader stops", async () => {
    const closed = Promise.withResolvers<void>();
    const { fetch, origin } = await setUp((response) => {
      response.on("close", closed.resolve);
      sendEndlessly(response);
    });
    for await (const _ of await fetch.open(`${origin}/file`, { maxBytes: 64 * MIB }, never)) break;
    await closed.promise;
  });

  test("a problem of the guarded fetch never contains an address or a token", async () => {
    const { fetch, origin } = await setUp((response) => response.destroy());
    const url = `${origin}/file?hm=signature`;
    const request = { maxBytes: MIB, headers: { authorization: "Bearer xoxb-secret" } };
    const error: unknown = await fetch.open(url, request, never).catch((error: unknown) => error);
    expect(error).toMatchObject({ kind: "unavailable", message: "could not be fetched: the connection failed" });
  });
});
