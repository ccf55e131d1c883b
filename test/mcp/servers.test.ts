import { mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { recordingLog, silent } from "../../lab/support/log.ts";
import {
  address,
  INITIALIZED,
  program,
  referenceServer,
  speaker,
  startCountingServer,
  startFarServer,
  startRawServer,
  startStreamServer,
  toMcpConfig,
} from "../../lab/support/mcp-world.ts";
import type { McpServerConfig } from "../../src/config/mcp-servers.ts";
import { createLogger } from "../../src/log/log.ts";
import { createMcpServers, type McpServers } from "../../src/mcp/servers.ts";
import { type ToolContext, ToolError } from "../../src/tools/tool.ts";
import { eventually } from "../support/eventually.ts";
import { json, startFaultServer } from "../support/fault-server.ts";

const PLACE = { platform: "test", channelId: "general" };

async function run(servers: McpServers, name: string, args: object = {}, context: Partial<ToolContext> = {}) {
  const tool = servers.toolsOf(PLACE).find((candidate) => candidate.name === name);
  if (tool === undefined) throw new Error(`There is no ${name}.`);
  const output = await tool.run(
    tool.schema.parse(args),
    { conversationId: "c", ...context },
    AbortSignal.timeout(30_000),
  );
  return typeof output === "string" ? { text: output, pictures: [] } : output;
}

async function start(...configs: McpServerConfig[]): Promise<McpServers> {
  const servers = createMcpServers(configs, silent);
  onTestFinished(() => servers.close());
  await servers.tried();
  return servers;
}

/** The bot with one server that answers like this. */
async function startRaw(...given: Parameters<typeof startRawServer>): Promise<McpServers> {
  const raw = await startRawServer(...given);
  onTestFinished(raw.close);
  return start(toMcpConfig("shop", address(raw.url)));
}

/** The tools of most servers here. */
const BUY = { tools: [{ name: "buy", inputSchema: { type: "object" } }] };

describe("the reference servers", () => {
  const cleanUps: Array<() => unknown> = [];
  let folder: string;
  let servers: McpServers;

  beforeAll(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), "palaver-mcp-")));
    await writeFile(join(folder, "note.txt"), "buy tea");
    const far = await startFarServer();
    cleanUps.push(() => rm(folder, { recursive: true, force: true }), far.close);
    servers = createMcpServers(
      [
        toMcpConfig("near", program(referenceServer("everything"), ["stdio"], { OWN: "its own" })),
        toMcpConfig("far", address(far.url)),
        toMcpConfig("files", program(referenceServer("filesystem"), [folder])),
      ],
      silent,
    );
    cleanUps.push(() => servers.close());
    await eventually(() => statesOf(servers)).toEqual(["ready", "ready", "ready"]);
  });

  afterAll(async () => {
    for (const cleanUp of cleanUps.toReversed()) await cleanUp();
  });

  test.each(["near", "far"])(
    "the reference servers return text, structured content, images and links over %s",
    async (name) => {
      expect((await run(servers, `${name}__echo`, { message: "hello" })).text).toContain("Echo: hello");
      const weather = await run(servers, `${name}__get-structured-content`, { location: "Chicago" });
      expect(weather.text).toContain('"conditions"');
      const picture = await run(servers, `${name}__get-tiny-image`);
      expect(picture.text).toContain("[An image, image/png");
      expect(picture.pictures).toMatchObject([
        { image_url: { url: expect.stringMatching(/^data:image\/png;base64,/) } },
      ]);
      const links = await run(servers, `${name}__get-resource-links`, { count: 2 });
      expect(links.text).toMatch(/\[A resource ".+" at demo:\/\/resource/);
      const [, uri = ""] = /- (demo:\S+features\.md)/.exec((await run(servers, `${name}__resources`)).text) ?? [];
      expect((await run(servers, `${name}__resources`, { uri })).text).toContain(`[The resource ${uri}`);
    },
  );

  test.each(["near", "far"])("the reference servers return their prompts with arguments over %s", async (name) => {
    const [report] = servers.report(PLACE).filter((one) => one.name === name);
    expect(report?.prompts).toContain(`!${name}:args-prompt <city> [state]`);
    const ask = (message: string, off: string[] = []) =>
      servers.readPrompt(PLACE, message, off, AbortSignal.timeout(30_000));
    const weather = (place: string) => [{ role: "user", content: `What's weather in ${place}?` }];
    expect(await ask(`!${name}:args-prompt Paris`)).toEqual(weather("Paris"));
    expect(await ask(`/${name}:args-prompt "New York" state=NY`)).toEqual(weather("New York, NY"));
    expect(await ask(`!${name}:args-prompt state=Texas San Antonio`)).toEqual(weather("San Antonio, Texas"));
    expect(await ask(`!${name}:args-prompt`)).toMatch(/^That also needs `city`: `!\w+:args-prompt <city> \[state\]`/);
    expect(await ask(`!${name}:no-such`)).toMatch(/has no prompt with that name\. It has: `!\w+:/);
    expect(await ask(`!${name}:args-prompt Paris`, [name])).toBeUndefined();
    expect(await ask("!elsewhere:args-prompt Paris")).toBeUndefined();
    expect(await ask("what is the weather?")).toBeUndefined();
  });

  test("the reference servers report the progress of a call", async () => {
    const told: string[] = [];
    const onProgress = (text: string) => void told.push(text);
    await run(servers, "near__trigger-long-running-operation", { duration: 0.2, steps: 2 }, { onProgress });
    expect(told[0]).toBe("using Trigger Long Running Operation Tool: 50 %");
  });

  test("the reference servers get only their own variables, none of the bot's", async () => {
    const { text } = await run(servers, "near__get-env");
    const names = [...text.matchAll(/^ {2}"(\w+)":/gm)].map(([, name]) => name);
    expect(names).toContain("OWN");
    const usual = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "OWN"];
    expect(names.filter((name) => !usual.includes(name ?? ""))).toEqual([]);
  });

  test("the reference servers see neither sampling nor roots, and so offer no tools for them", () => {
    const names = servers.toolsOf(PLACE).map(({ name }) => name);
    expect(names.filter((name) => /sampling|roots|elicitation/.test(name))).toEqual([]);
  });

  test("the reference servers mark the tools that act, which need approval, and refuse forbidden calls", async () => {
    const [reads, writes] = ["files__read_text_file", "files__move_file"].map((name) =>
      servers.toolsOf(PLACE).find((tool) => tool.name === name),
    );
    expect([reads?.acts, reads?.approval]).toEqual([false, undefined]);
    expect([writes?.acts, writes?.approval]).toEqual([true, { server: "files" }]);
    expect((await run(servers, "files__read_text_file", { path: join(folder, "note.txt") })).text).toContain("buy tea");
    await expect(run(servers, "files__read_text_file", { path: "/etc/passwd" })).rejects.toThrow(/outside|denied/i);
  });

  test("the bot offers the reference servers in their channels with the allowed tools", async () => {
    const more = { channels: ["chat:c1"], allow: ["echo", "get-sum"], deny: ["get-sum"] };
    const bounded = await start(toMcpConfig("near", program(referenceServer("everything"), ["stdio"]), more));
    const names = (place: object) =>
      bounded.toolsOf({ platform: "chat", channelId: "c2", ...place }).map(({ name }) => name);
    expect(names({ channelId: "c1" })).toEqual(["near__echo"]);
    expect(names({ channelId: "c1", threadId: "t" })).toEqual(["near__echo"]);
    expect(names({})).toEqual([]);
  });
});

test("the bot lists the tools of a server again when they change", async () => {
  const server = import.meta.resolve("@modelcontextprotocol/server");
  const stdio = import.meta.resolve("@modelcontextprotocol/server/stdio");
  const code = `const { McpServer } = await import(${JSON.stringify(server)});
    const { StdioServerTransport } = await import(${JSON.stringify(stdio)});
    const shop = new McpServer({ name: "shop", version: "1" });
    const done = async () => ({ content: [{ type: "text", text: "done" }] });
    shop.registerTool("open", {}, async () => {
      shop.registerTool("buy", {}, done);
      return done();
    });
    await shop.connect(new StdioServerTransport());`;
  const servers = await start(toMcpConfig("shop", program("--input-type=module", ["-e", code])));
  const names = () => servers.toolsOf(PLACE).map(({ name }) => name);
  expect(names()).toEqual(["shop__open"]);
  await run(servers, "shop__open");
  await eventually(names).toEqual(["shop__open", "shop__buy"]);
});

/**
 * Responses from older revisions over stdio and HTTP, and one from the newest revision. The SDK reads each with a
 * different schema.
 */
const WAYS = ["a program", "HTTP", "the newest revision"] as const;
const EVERYTHING = { tools: {}, prompts: {}, resources: {} };

/** A server that completes the handshake and responds to every other method with one of `results`. */
async function startAnswering(way: (typeof WAYS)[number], results: Record<string, unknown>) {
  if (way === "HTTP") {
    const raw = await startRawServer((method) => results[method] ?? {}, undefined, EVERYTHING);
    onTestFinished(raw.close);
    return address(raw.url);
  }
  const cached = { resultType: "complete", ttlMs: 0, cacheScope: "private" };
  const discovered = { ...cached, supportedVersions: ["2026-07-28"], capabilities: EVERYTHING };
  const isNewest = way === "the newest revision";
  const folder = await mkdtemp(join(tmpdir(), "palaver-mcp-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, "results.json");
  await writeFile(path, JSON.stringify(results));
  return speaker(`
    const { readFileSync } = await import("node:fs");
    const results = JSON.parse(readFileSync(${JSON.stringify(path)}, "utf8"));
    const meta = { "io.modelcontextprotocol/subscriptionId": id };
    if (method === "server/discover") say(${isNewest} ? { id, result: ${JSON.stringify(discovered)} } : { id, error: { code: -32601, message: "No." } });
    else if (method === "initialize") say({ id, result: ${JSON.stringify({ ...INITIALIZED, capabilities: EVERYTHING })} });
    else if (method === "subscriptions/listen") say({ method: "notifications/subscriptions/acknowledged", params: { notifications: {}, _meta: meta } });
    else if (id !== undefined) say({ id, result: { ...(${isNewest} && ${JSON.stringify(cached)}), ...results[method] } });`);
}

describe.each(WAYS)("a server over %s that violates the protocol", (way) => {
  async function startWrong(results: Record<string, unknown>) {
    const { log, lines } = recordingLog();
    const servers = createMcpServers([toMcpConfig("odd", await startAnswering(way, results))], log);
    onTestFinished(() => servers.close());
    await servers.tried();
    return { servers, faults: () => lines.flatMap(({ field }) => field ?? []) };
  }

  test("a server that violates the protocol keeps its valid tools, and each faulty tool and field is logged once", async () => {
    const inputSchema = { type: "object" };
    const { servers, faults } = await startWrong({
      "tools/list": {
        nextCursor: null,
        // Over HTTP, the SDK rejects this before the bot's code sees it.
        ...(way !== "HTTP" && { _meta: null }),
        tools: [
          {},
          null,
          { name: 7, inputSchema },
          {
            name: "hints",
            annotations: { readOnlyHint: true, destructiveHint: null, idempotentHint: null },
            inputSchema,
          },
          { name: "nulls", title: null, description: null, annotations: null, outputSchema: null, inputSchema },
          { name: "required", inputSchema: { type: "object", properties: { a: { type: "string" } }, required: null } },
          {
            name: "union",
            inputSchema: { anyOf: [{ properties: { a: { type: "string" } } }, { properties: { b: {} } }] },
          },
          { name: "empty", inputSchema: {} },
          { name: "none" },
          { name: "list", inputSchema: { type: "object", properties: [] } },
          { name: "output", inputSchema, outputSchema: { type: "array" } },
        ],
      },
      "prompts/list": {
        prompts: [
          { name: "wrong", arguments: 7 },
          {},
          { name: "right", arguments: [{ name: "a", required: null }, {}] },
        ],
      },
    });
    const [report] = servers.report(PLACE);
    expect([report?.state, report?.problem]).toEqual(["ready", undefined]);
    const named = new Map(servers.toolsOf(PLACE).map((tool) => [tool.name.slice("odd__".length), tool]));
    const usual = ["hints", "nulls", "required", "union", "empty", "none", "list", "output", "resources"];
    expect([...named.keys()]).toEqual(usual);
    expect(named.get("hints")?.acts).toBe(false);
    expect(named.get("required")?.parameters["properties"]).toEqual({ a: { type: "string" } });
    expect(Object.keys(Object(named.get("union")?.parameters["properties"]))).toEqual(["a", "b"]);
    expect(report?.prompts).toEqual(["!odd:wrong", "!odd:right [a]"]);
    expect(faults()).toEqual(
      expect.arrayContaining([
        "tools 1: name",
        "tools 2",
        "tools 3: name",
        "hints: annotations.idempotentHint",
        "required: inputSchema",
        "union: inputSchema",
        "wrong: arguments",
        "prompts 2: name",
      ]),
    );
    expect(new Set(faults()).size).toBe(faults().length);
  });

  test.each([900, 5_000])("a tool with a schema %i levels deep does not affect the other tools", async (levels) => {
    const deep = `${'{"type":"object","properties":{"a":'.repeat(levels)}{}${"}}".repeat(levels)}`;
    const tools = [
      { name: "deep", inputSchema: JSON.parse(deep) },
      { name: "flat", inputSchema: { type: "object" } },
    ];
    const { servers, faults } = await startWrong({ "tools/list": { tools } });
    expect(servers.toolsOf(PLACE).map(({ name }) => name)).toEqual(["odd__deep", "odd__flat", "odd__resources"]);
    expect(faults()).toEqual(["deep: inputSchema"]);
  });

  test("the model sees the readable parts of a faulty result", async () => {
    const image = { type: "image", data: "data:image/png;base64,AAAA", mimeType: null };
    const { servers } = await startWrong({
      "tools/list": { tools: [{ name: "act", inputSchema: { type: "object" } }] },
      "tools/call": {
        isError: null,
        structuredContent: null,
        content: [
          { type: "text", text: "done" },
          { type: "hologram" },
          null,
          { type: "text", text: 7 },
          image,
          { type: "audio" },
        ],
      },
      "resources/list": { resources: [{ uri: "a://b", name: null }, { name: "no address" }] },
      "resources/read": {
        contents: [
          { uri: "a://b", text: null },
          { uri: "a://c", text: "kept" },
        ],
      },
      "prompts/list": { prompts: [{ name: "ask" }] },
      "prompts/get": { messages: [{ role: "system", content: [{ type: "text", text: "one" }, "two"] }] },
    });
    const unreadable = "[An unreadable part]";
    expect((await run(servers, "odd__act")).text).toContain(
      `\ndone\n${unreadable}\n7\n[An image, no type, 1 KiB]\n${unreadable}\n`,
    );
    expect((await run(servers, "odd__resources")).text).toContain("\n- a://b (a://b) \n");
    expect((await run(servers, "odd__resources", { uri: "a://b" })).text).toContain(
      `${unreadable}\n[The resource a://c, no type]\nkept\n`,
    );
    expect(await servers.readPrompt(PLACE, "!odd:ask", [], AbortSignal.timeout(30_000))).toEqual([
      { role: "user", content: "one" },
      { role: "user", content: "two" },
    ]);
  });
});

test.each([
  ['{ error: "no such till" }', /failed\. From the server "shop"[^]*no such till/],
  ['{ error: { code: "E_TILL", message: "no such till", data: null } }', /failed\.[^]*no such till/],
  ["{ error: null }", /failed\.[^]*an error without a message/],
])("a call fails at once if its program answers with %s", async (reply, words) => {
  const code = `
    if (method === "initialize") say({ id, result: initialized });
    else if (method === "tools/list") say({ id, result: { tools: [{ name: "buy", inputSchema: { type: "object" } }] } });
    else if (method === "server/discover") say({ id, error: { code: -32601, message: "No." } });
    else if (method === "tools/call") say({ id, ...${reply} });`;
  const servers = await start(toMcpConfig("shop", speaker(code)));
  await expect(run(servers, "shop__buy")).rejects.toThrow(words);
});

test("a server with prompts but no tools becomes ready", async () => {
  const answer = (method: string) => (method === "prompts/list" ? { prompts: [{ name: "ask" }] } : {});
  const servers = await startRaw(answer, undefined, { prompts: {} });
  expect(servers.report(PLACE)).toMatchObject([{ state: "ready", tools: [], prompts: ["!shop:ask"] }]);
});

test("a call for which the server asks a person for input fails, because no one is asked", async () => {
  const asking = {
    resultType: "input_required",
    inputRequests: {
      sure: {
        method: "elicitation/create",
        params: { mode: "form", message: "Sure?", requestedSchema: { type: "object", properties: {} } },
      },
    },
  };
  const way = await startAnswering("the newest revision", {
    "tools/list": BUY,
    "tools/call": asking,
  });
  const servers = await start(toMcpConfig("shop", way));
  await expect(run(servers, "shop__buy")).rejects.toThrow(ToolError);
});

test("the client needs no time for a reply that is designed to slow down regular expressions", async () => {
  const spaces = `${" ".repeat(2_000_000)}!`;
  const servers = await startRaw((method, params, response) => {
    if (method !== "tools/call")
      return { tools: ["page", "picture"].map((name) => ({ name, inputSchema: { type: "object" } })) };
    if ((params as { name: string }).name === "page") return void response.writeHead(504).end(spaces);
    return { content: [{ type: "image", data: spaces, mimeType: "image/png" }] };
  });
  await expect(run(servers, "shop__page")).rejects.toThrow("HTTP 504");
  expect((await run(servers, "shop__picture")).text).toContain("An unreadable part");
});

test("a prompt's argument can have any name", async () => {
  const code = `
    if (method === "initialize") say({ id, result: { ...initialized, capabilities: { prompts: {}, tools: {} } } });
    else if (method === "prompts/list") say({ id, result: { prompts: [{ name: "ask", arguments: [{ name: "constructor", required: true }] }] } });
    else if (method === "prompts/get") say({ id, result: { messages: [{ role: "user", content: { type: "text", text: line } }] } });
    else if (method === "server/discover") say({ id, error: { code: -32601, message: "No." } });
    else if (id !== undefined) say({ id, result: { tools: [] } });`;
  const servers = await start(toMcpConfig("shop", speaker(code)));
  const ask = (message: string) => servers.readPrompt(PLACE, message, [], AbortSignal.timeout(30_000));
  expect(await ask("!shop:ask")).toMatch(/^That also needs `constructor`/);
  expect(await ask("!shop:ask tea")).toMatchObject([{ content: expect.stringContaining('"constructor":"tea"') }]);
});

describe("a server of the stateless revision", () => {
  test("a stateless server is called over HTTP with the configured headers", async () => {
    const counter = await startCountingServer();
    onTestFinished(counter.close);
    const servers = await start(toMcpConfig("shop", address(counter.url, { authorization: "Bearer x" })));
    const { text } = await run(servers, "shop__buy", { note: "tea" });
    expect(text).toContain("bought");
    expect(counter.marks).toEqual(["tea"]);
  });

  test("the client lists a server again after its stream of changes breaks, and running calls continue", async () => {
    const counter = await startCountingServer();
    onTestFinished(counter.close);
    const held = Promise.withResolvers<string>();
    counter.answerWith(() => held.promise);
    const servers = await start(toMcpConfig("shop", address(counter.url)));
    const call = run(servers, "shop__buy", { note: "tea" });
    await eventually(() => counter.marks).toEqual(["tea"]);
    for (const name of ["sell", "swap"]) {
      counter.offer(name);
      counter.endListening();
      await eventually(() => servers.toolsOf(PLACE).map((tool) => tool.name)).toContain(`shop__${name}`);
    }
    held.resolve("bought at last");
    expect((await call).text).toContain("bought at last");
  });

  test("the client lists a server that reports a change during the connect, and keeps the connection", async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => void unhandled.push(reason);
    process.on("unhandledRejection", note);
    onTestFinished(() => void process.off("unhandledRejection", note));
    // The stream's confirmation and the change arrive in one chunk.
    const code = `
      const meta = { "io.modelcontextprotocol/subscriptionId": id };
      const capabilities = { tools: { listChanged: true } };
      const cached = { resultType: "complete", ttlMs: 0, cacheScope: "private" };
      if (method === "server/discover") say({ id, result: { ...cached, supportedVersions: ["2026-07-28"], capabilities } });
      else if (method === "subscriptions/listen") say(
        {
          method: "notifications/subscriptions/acknowledged",
          params: { notifications: { toolsListChanged: true }, _meta: meta },
        },
        { method: "notifications/tools/list_changed", params: { _meta: meta } },
      );
      else say({ id, result: { ...cached, tools: [{ name: "buy", inputSchema: { type: "object" } }] } });`;
    const servers = await start(toMcpConfig("shop", speaker(code)));
    expect(servers.report(PLACE)).toMatchObject([{ state: "ready", tools: [{ name: "shop__buy" }] }]);
    expect(unhandled).toEqual([]);
  });
});

describe("a program of an older revision", () => {
  const ANSWERS = `
    if (method === "initialize") say({ id, result: initialized });
    else if (method === "tools/list") say({ id, result: { tools: [{ name: "buy", inputSchema: { type: "object" } }] } });
    else if (method === "tools/call") say({ id, result: { content: [{ type: "text", text: "bought" }] } });`;

  async function startNoting(code: string) {
    const folder = await mkdtemp(join(tmpdir(), "palaver-mcp-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const path = join(folder, "asked");
    await writeFile(path, "");
    const noting = `appendFileSync(${JSON.stringify(path)}, process.pid + " " + method + "\\n");`;
    const servers = createMcpServers([toMcpConfig("shop", speaker(noting + code))], silent);
    onTestFinished(() => servers.close());
    const asked = async () => {
      const lines = (await readFile(path, "utf8")).split("\n").slice(0, -1);
      return lines.map((line) => line.split(" "));
    };
    return { servers, asked };
  }

  test("a program that ignores the first request gets `initialize` after a while, and can answer the first request late", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const { servers, asked } = await startNoting(`
      if (method === "server/discover") globalThis.late = id;
      if (method === "initialize") say({ id: late, error: { code: -32601, message: "Method not found" } });
      ${ANSWERS}`);
    await eventually(async () => (await asked()).map(([, method]) => method)).toEqual(["server/discover"]);
    vi.advanceTimersByTime(10_000);
    vi.useRealTimers();
    await servers.tried();
    expect(statesOf(servers)).toEqual(["ready"]);
    expect((await run(servers, "shop__buy")).text).toContain("bought");
    expect(new Set((await asked()).map(([pid]) => pid)).size).toBe(1);
  });

  test("the client restarts a program that exits on a request before `initialize`, and leaves no process behind", async () => {
    const { servers, asked } = await startNoting(`if (method === "server/discover") process.exit(1); ${ANSWERS}`);
    await servers.tried();
    expect(statesOf(servers)).toEqual(["ready"]);
    expect((await run(servers, "shop__buy")).text).toContain("bought");
    const lines = await asked();
    expect(lines.slice(0, 2).map(([, method]) => method)).toEqual(["server/discover", "initialize"]);
    const pids = [...new Set(lines.map(([pid]) => Number(pid)))];
    expect(pids).toHaveLength(2);
    await servers.close();
    for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow("ESRCH");
  });
});

describe("a server over an SSE stream", () => {
  async function startStreaming() {
    const server = await startStreamServer();
    onTestFinished(server.close);
    const transport = { type: "sse", url: server.url, headers: {}, oauth: undefined } as const;
    return { server, servers: await start(toMcpConfig("shop", transport)) };
  }

  test("the client reconnects when the SSE stream ends", async () => {
    const { server, servers } = await startStreaming();
    expect((await run(servers, "shop__buy")).text).toContain("bought");
    server.drop();
    await eventually(server.sessions).toBe(2);
    await eventually(() => statesOf(servers)).toEqual(["ready"]);
    expect((await run(servers, "shop__buy")).text).toContain("bought");
  });

  test("an SSE server that rejects one call continues with the others", async () => {
    const { server, servers } = await startStreaming();
    server.control.refusal = 429;
    await expect(run(servers, "shop__buy")).rejects.toThrow(ToolError);
    delete server.control.refusal;
    expect((await run(servers, "shop__buy")).text).toContain("bought");
    expect(server.sessions()).toBe(1);
  });
});

describe("a server that rejects one call", () => {
  test.each([
    [400, true],
    [429, true],
    [500, true],
    [502, false],
    [504, false],
  ])(
    "after %i for one call, the other calls continue, and the server counts as having answered: %s",
    async (status, isAnswer) => {
      const held = Promise.withResolvers<object>();
      const begun = Promise.withResolvers<void>();
      const servers = await startRaw(
        (method, params, response) => {
          const inputSchema = { type: "object" };
          if (method !== "tools/call") return { tools: ["hold", "buy"].map((name) => ({ name, inputSchema })) };
          if ((params as { name: string }).name === "buy") return void response.writeHead(status).end("not now");
          begun.resolve();
          return held.promise;
        },
        { id: "one", status: 404 },
      );
      const call = run(servers, "shop__hold");
      await begun.promise;
      const refused = await run(servers, "shop__buy").catch((error: unknown) => error);
      expect(refused instanceof ToolError).toBe(isAnswer);
      expect(String(refused)).toContain("not now");
      held.resolve({ content: [{ type: "text", text: "held" }] });
      expect((await call).text).toContain("held");
    },
  );

  test.each([
    ["a reply", (body: object) => body],
    ["HTTP 500", (body: object, response: ServerResponse) => void response.writeHead(500).end(JSON.stringify(body))],
  ])(
    "a server that answers with an error of JSON-RPC in %s has failed the call, and the model reads its words as framed data",
    async (_, answer) => {
      const error = { code: -32_603, message: 'near "SELCT": syntax error; token-of-shop', data: { at: 7 } };
      const raw = await startRawServer((method, _, response) => {
        if (method !== "tools/call") return { tools: [{ name: "query", inputSchema: { type: "object" } }] };
        return answer({ error }, response);
      });
      onTestFinished(raw.close);
      const servers = await start(toMcpConfig("shop", address(raw.url, { "X-Token": "token-of-shop" })));
      const refused = await run(servers, "shop__query").catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(ToolError);
      expect(String(refused)).toMatch(
        /The call failed\. From the server "shop"\. This is external data[^]*<data[^]*near "SELCT": syntax error/,
      );
      expect(String(refused)).not.toContain("token-of-shop");
    },
  );

  test("a call whose reply is not JSON counts as done", async () => {
    const servers = await startRaw((method, _, response) => {
      if (method !== "tools/call") return BUY;
      return void response.writeHead(200, { "content-type": "text/html" }).end("<p>Done.</p>");
    });
    expect((await run(servers, "shop__buy")).text).toContain("The call was made");
  });
});

test.each([500, 503, 504, 200])(
  "the client initializes a server that answers the version probe with %i",
  async (status) => {
    const servers = await startRaw((method, _, response) => {
      if (method === "tools/list") return BUY;
      return void response.writeHead(status, { "content-type": "text/html" }).end("What is that?");
    });
    expect(servers.report(PLACE)).toMatchObject([{ state: "ready", tools: [{ name: "shop__buy" }] }]);
  },
);

describe("a tool list", () => {
  const MIB = 1024 * 1024;

  test.each(["tools", "prompts", "resources"])(
    "the client truncates an endless list of %s by its size, not by its pages",
    async (kind) => {
      let pages = 0;
      const answer = (method: string, params: unknown) => {
        if (method !== `${kind}/list`) return { tools: [], prompts: [], resources: [] };
        pages += 1;
        const cursor = (params as { cursor?: string } | undefined)?.cursor ?? "0";
        const icons = [{ src: "x".repeat(5 * MIB) }];
        const item = { name: `n${cursor}`, uri: `a://${cursor}`, inputSchema: { type: "object" }, icons };
        return { [kind]: [item], nextCursor: String(Number(cursor) + 1) };
      };
      const raw = await startRawServer(answer, undefined, EVERYTHING);
      onTestFinished(raw.close);
      const { log, lines } = recordingLog();
      const servers = createMcpServers([toMcpConfig("shop", address(raw.url))], log);
      onTestFinished(() => servers.close());
      await servers.tried();
      const { text } = await run(servers, "shop__resources");
      const [report] = servers.report(PLACE);
      expect(report?.state).toBe("ready");
      const listed = { tools: report?.tools.slice(0, -1), prompts: report?.prompts, resources: text.match(/^- /gm) }[
        kind
      ];
      expect(listed).toHaveLength(3);
      expect(pages).toBe(4);
      expect(lines).toContainEqual(expect.objectContaining({ level: 40, list: kind }));
    },
  );

  test("the client uses a list whose second page fails up to that page", async () => {
    const servers = await startRaw((method, params) => {
      if (method !== "tools/list") return {};
      if (params !== undefined && "cursor" in Object(params)) return { error: { code: -32_603, message: "no more" } };
      return { tools: [{ name: "first", inputSchema: { type: "object" } }], nextCursor: "two" };
    });
    expect(servers.toolsOf(PLACE).map(({ name }) => name)).toContain("shop__first");
  });

  test("the client stops reading a list whose cursor never changes", async () => {
    const servers = await startRaw((method) => {
      if (method !== "tools/list") return {};
      return { tools: [{ name: "one", inputSchema: { type: "object" } }], nextCursor: "again" };
    });
    expect(servers.report(PLACE)).toMatchObject([{ state: "ready" }]);
  });
});

test("the client lists all tools of a server with one tool per page", async () => {
  const servers = await startRaw((method, params) => {
    if (method !== "tools/list") return {};
    const page = Number((params as { cursor?: string } | undefined)?.cursor ?? 0);
    const tool = { name: `tool${page}`, inputSchema: { type: "object" } };
    return { tools: [tool], ...(page < 30 && { nextCursor: String(page + 1) }) };
  });
  expect(servers.toolsOf(PLACE)).toHaveLength(31);
});

test("the client truncates no description inside a character", async () => {
  const description = `x${"🦜".repeat(600)}`;
  const answer = (method: string) =>
    method === "tools/list"
      ? {
          tools: ["", "x"].map((more) => ({
            name: `t${more}`,
            description: more + description,
            inputSchema: { type: "object" },
          })),
        }
      : { resources: [{ uri: "a://b", name: "b", description }] };
  const servers = await startRaw(answer, undefined, EVERYTHING);
  const [one, other] = servers.toolsOf(PLACE).map((tool) => tool.description);
  const { text } = await run(servers, "shop__resources");
  for (const shown of [one, other, text]) expect(shown).toMatch(/🦜…/);
  for (const shown of [one, other, text]) expect(shown).not.toContain("\uFFFD");
});

describe("concurrent calls to one server", () => {
  test("the number of concurrent calls is limited over all conversations, and the next call starts when one ends", async () => {
    const counter = await startCountingServer();
    onTestFinished(counter.close);
    const held = new Map<string, () => void>();
    counter.answerWith((note) => new Promise((resolve) => held.set(note, () => resolve(`bought ${note}`))));
    const servers = await start(toMcpConfig("shop", address(counter.url)));
    const notes = Array.from({ length: 10 }, (_, index) => `n${index}`);
    const calls = notes.map((note) => run(servers, "shop__buy", { note }, { conversationId: note }));
    await eventually(() => counter.marks.length).toBe(8);
    held.get("n0")?.();
    await calls[0];
    await eventually(() => counter.marks).toContain("n8");
    expect(counter.marks).not.toContain("n9");
    held.get("n1")?.();
    await eventually(() => counter.marks).toContain("n9");
    for (const release of held.values()) release();
    const texts = (await Promise.all(calls)).map(({ text }) => text);
    expect(texts.map((text) => /bought (n\d)/.exec(text)?.[1])).toEqual(notes);
  });

  test("the client does not send calls that get no slot in time, and tells the model", async () => {
    const counter = await startCountingServer();
    onTestFinished(counter.close);
    counter.answerWith(() => new Promise(() => {}));
    const servers = await start(toMcpConfig("shop", address(counter.url), { timeoutMs: 300 }));
    const calls = Array.from({ length: 17 }, (_, index) => run(servers, "shop__buy", { note: `n${index}` }));
    const ends = await Promise.allSettled(calls);
    const refused = ends.filter((end) => end.status === "rejected" && /is busy: not run/.test(String(end.reason)));
    expect(refused.length).toBeGreaterThan(0);
    expect(counter.marks.length).toBeLessThanOrEqual(17 - refused.length);
  });
});

describe("a server that disconnects", () => {
  test("the client restarts a server that exits, and a call meanwhile reports that the server is unreachable", async () => {
    const folder = await mkdtemp(join(tmpdir(), "palaver-mcp-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const note = join(folder, "pid");
    const code = `
      import { writeFileSync } from "node:fs";
      writeFileSync(${JSON.stringify(note)}, String(process.pid));
      await import(${JSON.stringify(referenceServer("memory"))});`;
    const servers = await start(toMcpConfig("near", program("--input-type=module", ["-e", code])));
    expect(statesOf(servers)).toEqual(["ready"]);
    process.kill(Number(await readFile(note, "utf8")), "SIGKILL");
    await eventually(() => statesOf(servers)).toEqual(["failed"]);
    await expect(run(servers, "near__read_graph")).rejects.toThrow(/is unreachable/);
    await eventually(() => statesOf(servers)).toEqual(["ready"]);
  });

  test.each([404, 400])(
    "a server that comes back without its sessions (%i) gets the call in a new session, once",
    async (status) => {
      const session = { id: "one", status };
      let calls = 0;
      const answer = (method: string) => {
        if (method !== "tools/call") return BUY;
        calls += 1;
        return { content: [{ type: "text", text: "bought" }] };
      };
      const servers = await startRaw(answer, session);
      session.id = "two";
      expect((await run(servers, "shop__buy")).text).toContain("bought");
      expect(calls).toBe(1);
    },
  );

  test("a call to an unreachable server does nothing, and tells the model", async () => {
    const raw = await startRawServer(() => BUY);
    const servers = await start(toMcpConfig("shop", address(raw.url)));
    await raw.close();
    const call = run(servers, "shop__buy");
    await expect(call).rejects.toThrow(ToolError);
    await expect(call).rejects.toThrow(/did not accept the call/);
  });

  test("the log reports a server that was never reachable without its secrets", async () => {
    const servers = await start(
      toMcpConfig("none", {
        type: "stdio",
        command: "/no/such-program-secret",
        args: [],
        env: { T: "such-program-secret" },
        cwd: undefined,
      }),
      toMcpConfig("far", address(`http://127.0.0.1:${await freePort()}/mcp`)),
    );
    const [none, far] = servers.report(PLACE);
    expect(none).toMatchObject({ state: "failed", problem: expect.stringMatching(/ENOENT/) });
    expect(none?.problem).not.toContain("secret");
    expect(far).toMatchObject({ state: "failed", problem: expect.stringMatching(/ECONNREFUSED/) });
  });

  test("the log shows the words of a server that cannot list its tools again only at debug", async () => {
    const server = await startFaultServer((response, received) => {
      const { id } = received.json as { id: number };
      const error = { code: -32_001, message: "canary of the far one" };
      return json(200, { jsonrpc: "2.0", id, error })(response, received);
    });
    const near = speaker(`
      const capabilities = { tools: { listChanged: true } };
      if (method === "initialize") say({ id, result: { ...initialized, capabilities } });
      else if (method === "tools/list" && !globalThis.isListed) {
        globalThis.isListed = true;
        say({ id, result: { tools: [] } }, { method: "notifications/tools/list_changed" });
      } else if (id !== undefined) say({ id, error: { code: -32000, message: "canary of the near one" } });`);
    const lines: Array<{ level: string; msg: string; err?: { message: string } }> = [];
    const write = (line: string) => void lines.push(JSON.parse(line) as (typeof lines)[number]);
    const log = createLogger({ level: "debug", secrets: [], tokens: [], destination: { write } });
    const configs = [toMcpConfig("far", address(`${server.url}/mcp`)), toMcpConfig("near", near)];
    const servers = createMcpServers(configs, log);
    onTestFinished(() => servers.close());
    const warned = () => lines.filter(({ level }) => level === "warn");
    await eventually(() => warned().map(({ msg }) => msg)).toEqual(
      expect.arrayContaining(["a tool server is unavailable; retrying", "could not list a tool server's tools again"]),
    );
    expect(warned().map(({ err }) => err?.message)).toEqual(
      expect.arrayContaining([expect.stringMatching(/-32001$/), expect.stringMatching(/-32000$/)]),
    );
    for (const quote of ["canary of the far one", "canary of the near one"]) {
      const quoting = lines.filter((line) => JSON.stringify(line).includes(quote));
      expect(new Set(quoting.map(({ level }) => level))).toEqual(new Set(["debug"]));
    }
  });
});

const statesOf = (servers: McpServers) => servers.report(PLACE).map(({ state }) => state);

describe("a hostile server", () => {
  const list = (tools: unknown[]) => (method: string) => (method === "tools/list" ? { tools } : {});

  test("a server with ten thousand tools and a schema bomb has a bounded list", async () => {
    let deep: object = { type: "string" };
    for (let level = 0; level < 500; level++) deep = { type: "object", properties: { next: deep } };
    const tools = Array.from({ length: 10_000 }, (_, index) => {
      return {
        name: `tool ${index}`,
        description: "call me ".repeat(150),
        inputSchema: index === 0 ? deep : { type: "object" },
      };
    });
    const servers = await startRaw(list([...tools, { name: "tool_0", inputSchema: { type: "object" } }]));
    const offered = servers.toolsOf(PLACE);
    expect(offered).toHaveLength(128);
    expect(new Set(offered.map(({ name }) => name)).size).toBe(128);
    expect(Math.max(...offered.map(({ description }) => description.length))).toBeLessThanOrEqual(1_000);
    expect(JSON.stringify(offered.map(({ parameters }) => parameters)).length).toBeLessThan(50_000);
  });

  test("a server that does not answer a call delays it only until the timeout", async () => {
    const raw = await startRawServer((method) => {
      if (method === "tools/call") return undefined;
      return { tools: [{ name: "hang", inputSchema: { type: "object" } }] };
    });
    onTestFinished(raw.close);
    const servers = await start(toMcpConfig("hostile", address(raw.url), { timeoutMs: 50 }));
    await expect(run(servers, "hostile__hang")).rejects.toThrow(/timed out/i);
  });

  test("the client aborts a server's endless response", async () => {
    const servers = await startRaw((method, _, response) => {
      if (method !== "tools/call") return { tools: [{ name: "pour", inputSchema: { type: "object" } }] };
      response.writeHead(200, { "content-type": "application/json" });
      const chunk = Buffer.alloc(1024 * 1024, "x");
      const pour = () => {
        while (!response.destroyed && response.write(chunk));
      };
      response.on("drain", pour);
      pour();
      return undefined;
    });
    await expect(run(servers, "shop__pour")).rejects.toThrow(/too large/);
  });

  test.each([
    ["says the same line for ever", ["yes"]],
    [
      "never ends its line",
      [
        "-e",
        "for (;;) if (!process.stdout.write('x'.repeat(65536))) await new Promise((r) => process.stdout.once('drain', r))",
      ],
    ],
    ["ends at once", ["-e", "process.exit(3)"]],
  ])("the client stops a server whose program %s, and the server blocks nothing", async (_, [first = "", ...rest]) => {
    const transport =
      first === "yes"
        ? { ...program(""), command: "yes", args: ["{}"] }
        : { ...program(""), args: ["--input-type=module", first, ...rest] };
    const servers = await start(toMcpConfig("hostile", transport));
    expect(servers.report(PLACE)).toMatchObject([{ state: "failed", tools: [] }]);
  });
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}
