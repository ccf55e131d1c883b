import { describe, expect, test } from "vitest";
import { WIRE_FAULTS } from "../../lab/gateway/faults.ts";
import { recordingLog } from "../../lab/support/log.ts";
import { FAULTS } from "../../src/sandbox/faults.ts";
import type { Sandbox, SandboxOptions } from "../../src/sandbox/server.ts";
import { ask, chunksOf, contentOf, draw, pngOf, start as startSandbox, textOf, WORDS } from "../sandbox/sandbox.ts";

const SAY = "say: one two three four five six seven eight";
const SAID = SAY.slice("say: ".length);

const start = (options: Partial<SandboxOptions> = {}): Promise<Sandbox> =>
  startSandbox({ faults: WIRE_FAULTS, ...options });

/** Everything that arrives before the stream ends or breaks, and which of the two happened. */
async function readAll(response: Response): Promise<{ bytes: Buffer; isCut: boolean }> {
  const parts: Uint8Array[] = [];
  try {
    for await (const part of response.body ?? []) parts.push(part);
    return { bytes: Buffer.concat(parts), isCut: false };
  } catch {
    return { bytes: Buffer.concat(parts), isCut: true };
  }
}

async function streamWith(fault: string) {
  const sandbox = await start();
  return await readAll(await ask(sandbox, SAY, { stream: true, model: `sandbox-chat:${fault}` }));
}

/** Reads until a text has arrived, then disconnects. */
async function readUntil(response: Response, wanted: RegExp): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const part of response.body ?? []) {
    text += decoder.decode(part, { stream: true });
    if (wanted.test(text)) return text;
  }
  throw new Error(`The stream ended before ${wanted}: ${text}`);
}

function isJson(line: string): boolean {
  return line.endsWith("}");
}

describe("a request for a fault of the lab", () => {
  test("a test can request every fault, streaming and whole, and the sandbox keeps running", async () => {
    const { log, lines } = recordingLog();
    const sandbox = await start({ log });
    const leave = new AbortController();
    const open = Object.keys({ ...FAULTS, ...WIRE_FAULTS }).flatMap((name) =>
      [true, false].map((stream) =>
        fetch(`${sandbox.url}/v1/chat/completions`, {
          method: "POST",
          headers: { authorization: "Bearer sk-sandbox-all", "content-type": "application/json" },
          body: JSON.stringify({ model: `sandbox-chat:${name}=1`, stream, messages: [{ role: "user", content: SAY }] }),
          signal: leave.signal,
        }).then(
          (response) => response.status,
          () => "cut",
        ),
      ),
    );
    const answers = await Promise.all(open);
    leave.abort();
    expect(new Set(answers)).toEqual(new Set([200, 401, 403, 429, 500, 503, "cut"]));
    expect(await contentOf(ask(sandbox, "say: alive"))).toBe("alive");
    expect(lines.filter((line) => Number(line["level"]) >= 40)).toEqual([]);
  });

  test("the list of faults contains those of the lab", async () => {
    expect(await contentOf(ask(await start(), "sandbox faults"))).toContain("`stall-keepalive`");
    expect(await contentOf(ask(await startSandbox(), "sandbox faults"))).not.toContain("`stall-keepalive`");
  });
});

describe("faults before the answer", () => {
  test("the fault `429` names the seconds, `429-date` a date, and `429-bare` neither", async () => {
    const sandbox = await start();
    const after = async (fault: string) => {
      const response = await ask(sandbox, "hi", { model: `sandbox-chat:${fault}` });
      expect(response.status).toBe(429);
      return response.headers.get("retry-after");
    };
    const askedAt = Date.now();
    expect(await after("429=7")).toBe("7");
    expect(await after("429-bare")).toBeNull();
    expect(Date.parse((await after("429-date=5")) ?? "")).toBeGreaterThanOrEqual(askedAt + 5000);
  });

  test("with the faults `slow-head` and `slow-first-token`, the gateway waits, then answers whole", async () => {
    const sandbox = await start();
    for (const fault of ["slow-head=0", "slow-first-token=0"]) {
      const text = await (await ask(sandbox, SAY, { stream: true, model: `sandbox-chat:${fault}` })).text();
      expect(textOf(chunksOf(text))).toBe(SAID);
    }
    const startedAt = performance.now();
    const response = await ask(sandbox, SAY, { stream: true, model: "sandbox-chat:slow-first-token=1" });
    await response.body?.getReader().read();
    expect(performance.now() - startedAt).toBeGreaterThan(900);
  });
});

describe("faults in a stream", () => {
  test("the faults `html` and `empty` have status 200 and no events", async () => {
    expect((await streamWith("html")).bytes.toString()).toMatch(/^<!doctype html>/);
    expect(await streamWith("empty")).toEqual({ bytes: Buffer.alloc(0), isCut: false });
  });

  test("with the fault `json`, the gateway answers with the whole completion", async () => {
    const { bytes } = await streamWith("json");
    expect(JSON.parse(bytes.toString())).toMatchObject({
      object: "chat.completion",
      choices: [{ message: { content: SAID } }],
    });
  });

  test("the fault `cut` drops the connection between events, `cut-in-line` inside a line, and `cut-in-character` inside a character", async () => {
    const cut = await streamWith("cut=3");
    expect([cut.isCut, cut.bytes.toString().endsWith("\n\n"), chunksOf(cut.bytes.toString()).length]).toEqual([
      true,
      true,
      4,
    ]);
    const inLine = await streamWith("cut-in-line=2");
    expect([inLine.isCut, inLine.bytes.toString()]).toEqual([true, expect.stringMatching(/\n\ndata: [^\n]+$/)]);
    const inCharacter = await streamWith("cut-in-character=2");
    expect(inCharacter.isCut).toBe(true);
    // The first byte of a three-byte character.
    expect(inCharacter.bytes.at(-1)).toBe(0xe8);
  });

  test("the fault `no-done` omits [DONE], `no-finish` also omits finish_reason, and neither drops the connection", async () => {
    const noDone = await streamWith("no-done");
    expect([noDone.isCut, chunksOf(noDone.bytes.toString()).at(-1)?.choices[0]?.finish_reason]).toEqual([
      false,
      "stop",
    ]);
    expect(noDone.bytes.toString()).not.toContain("[DONE]");
    const noFinish = await streamWith("no-finish=2");
    expect(noFinish.isCut).toBe(false);
    expect(noFinish.bytes.toString()).not.toMatch(/"finish_reason":"|\[DONE\]/);
  });

  test("with `stall` the gateway goes silent, with `stall-keepalive` it sends comments, and with `done-open` the connection stays open", async () => {
    const sandbox = await start();
    const withFault = (fault: string) => ask(sandbox, SAY, { stream: true, model: `sandbox-chat:${fault}` });
    expect(chunksOf(await readUntil(await withFault("stall=2"), /"content":" two/))).toHaveLength(3);
    expect(await readUntil(await withFault("stall-keepalive=1"), /: keepalive\n\n/)).toContain('"content":"one"');
    expect(await readUntil(await withFault("done-open"), /\[DONE\]\n\n/)).toContain('"finish_reason":"stop"');
  });

  test("the fault `malformed-chunk` loses no text, and `error-mid-stream` ends with an error object", async () => {
    const { bytes } = await streamWith("malformed-chunk=3");
    const lines = bytes
      .toString()
      .split("\n")
      .filter((line) => line.startsWith("data: {"));
    expect(lines.filter((line) => !isJson(line))).toHaveLength(3);
    expect(textOf(chunksOf(lines.filter(isJson).join("\n")))).toBe(SAID);

    const broken = await streamWith("error-mid-stream=2");
    const events = broken.bytes.toString().trim().split("\n\n");
    expect(JSON.parse(events.at(-1)?.slice("data: ".length) ?? "")).toMatchObject({
      error: { type: "server_error", param: null },
    });
    expect(events).toHaveLength(4);
  });

  test("the fault `giant-line` sends one line of the requested number of MiB", async () => {
    const { bytes } = await streamWith("giant-line=2");
    const longest = Math.max(
      ...bytes
        .toString()
        .split("\n")
        .map((line) => line.length),
    );
    expect(longest).toBeGreaterThan(2 * 1024 * 1024);
  });

  test("the faults `crlf` and `bytes` change only the form of the stream", async () => {
    const crlf = (await streamWith("crlf")).bytes.toString();
    expect(crlf.replaceAll("\r\n", "")).not.toContain("\n");
    expect(textOf(chunksOf(crlf.replaceAll("\r\n", "\n")))).toBe(SAID);
    expect(textOf(chunksOf((await streamWith("bytes")).bytes.toString()))).toBe(SAID);
  });
});

describe("faults in a whole answer", () => {
  test("the fault `usage-missing` leaves usage out", async () => {
    const sandbox = await start();
    const body = await (await ask(sandbox, SAY, { model: "sandbox-chat:usage-missing" })).json();
    expect(body).toMatchObject({ choices: [{ message: { content: SAID } }] });
    expect(body).not.toHaveProperty("usage");
  });

  test("the faults `broken-arguments` and `unknown-tool` break tool calls", async () => {
    const sandbox = await start();
    const tools = [
      {
        type: "function",
        function: {
          name: "recall",
          parameters: { type: "object", properties: { query: { type: "string" } }, required: ["query"] },
        },
      },
    ];
    const callOf = async (fault: string) => {
      const response = await ask(sandbox, 'use recall for "cats"', { tools, model: `sandbox-chat:${fault}` });
      const body = (await response.json()) as {
        choices: [{ message: { tool_calls: [{ function: { name: string; arguments: string } }] } }];
      };
      return body.choices[0].message.tool_calls[0].function;
    };
    const broken = await callOf("broken-arguments");
    expect(() => JSON.parse(broken.arguments) as unknown).toThrow(SyntaxError);
    expect((await callOf("unknown-tool")).name).toBe("recall_unknown");
  });
});

test("with the fault `not-an-image`, the gateway sends bytes that are no image", async () => {
  const bytes = await pngOf(draw(await start(), [WORDS], undefined, "sandbox-image:not-an-image"));
  expect(bytes.toString()).toMatch(/^<!doctype/);
});
