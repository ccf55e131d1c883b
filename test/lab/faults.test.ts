import { describe, expect, test } from "vitest";
import { ask, chunksOf, start, textOf } from "./sandbox.ts";

const SAY = "say: one two three four five six seven eight";
const SAID = SAY.slice("say: ".length);

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

/** Reads until a text has arrived, then leaves. */
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

describe("faults in a stream", () => {
  test("html and empty are 200 with no events", async () => {
    expect((await streamWith("html")).bytes.toString()).toMatch(/^<!doctype html>/);
    expect(await streamWith("empty")).toEqual({ bytes: Buffer.alloc(0), isCut: false });
  });

  test("json answers with the whole completion", async () => {
    const { bytes } = await streamWith("json");
    expect(JSON.parse(bytes.toString())).toMatchObject({
      object: "chat.completion",
      choices: [{ message: { content: SAID } }],
    });
  });

  test("cut breaks between events, cut-in-line inside a line, cut-in-character inside a character", async () => {
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
    // The first byte of a character of three.
    expect(inCharacter.bytes.at(-1)).toBe(0xe8);
  });

  test("no-done keeps finish_reason, no-finish loses both, and neither cuts the connection", async () => {
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

  test("stall goes silent, stall-keepalive sends comments, done-open stays open after [DONE]", async () => {
    const sandbox = await start();
    const withFault = (fault: string) => ask(sandbox, SAY, { stream: true, model: `sandbox-chat:${fault}` });
    expect(chunksOf(await readUntil(await withFault("stall=2"), /"content":" two/))).toHaveLength(3);
    expect(await readUntil(await withFault("stall-keepalive=1"), /: keepalive\n\n/)).toContain('"content":"one"');
    expect(await readUntil(await withFault("done-open"), /\[DONE\]\n\n/)).toContain('"finish_reason":"stop"');
  });

  test("malformed-chunk loses no text, error-mid-stream ends with an error object", async () => {
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

  test("giant-line is one line of so many MiB", async () => {
    const { bytes } = await streamWith("giant-line=2");
    const longest = Math.max(
      ...bytes
        .toString()
        .split("\n")
        .map((line) => line.length),
    );
    expect(longest).toBeGreaterThan(2 * 1024 * 1024);
  });

  test("crlf and bytes change nothing but the form", async () => {
    const crlf = (await streamWith("crlf")).bytes.toString();
    expect(crlf.replaceAll("\r\n", "")).not.toContain("\n");
    expect(textOf(chunksOf(crlf.replaceAll("\r\n", "\n")))).toBe(SAID);
    expect(textOf(chunksOf((await streamWith("bytes")).bytes.toString()))).toBe(SAID);
  });

  test("length and content-filter end early with their finish_reason", async () => {
    for (const [fault, reason] of [
      ["length=2", "length"],
      ["content-filter=2", "content_filter"],
    ] as const) {
      const chunks = chunksOf((await streamWith(fault)).bytes.toString());
      expect([textOf(chunks), chunks.at(-1)?.choices[0]?.finish_reason]).toEqual(["one two three", reason]);
    }
  });
});

describe("faults in a whole answer", () => {
  test("usage-missing leaves usage out", async () => {
    const sandbox = await start();
    const body = await (await ask(sandbox, SAY, { model: "sandbox-chat:usage-missing" })).json();
    expect(body).toMatchObject({ choices: [{ message: { content: SAID } }] });
    expect(body).not.toHaveProperty("usage");
  });

  test("cut breaks the body", async () => {
    const sandbox = await start();
    const response = await ask(sandbox, SAY, { model: "sandbox-chat:cut" });
    await expect(response.json()).rejects.toThrow(/terminated/);
  });

  test("broken-arguments and unknown-tool spoil tool calls", async () => {
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
