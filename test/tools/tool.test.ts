import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { ToolCall } from "../../src/gateway/chunks.ts";
import { defineTool, MAX_RESULT_CHARS, type Tool, ToolError, toDefinition } from "../../src/tools/tool.ts";
import { callTool, callTools } from "../support/tool-calls.ts";

const never = new AbortController().signal;
const context = { conversationId: "local:1" };

const call = (name: string, args: unknown, id = "call_1"): ToolCall => ({
  id,
  type: "function",
  function: { name, arguments: typeof args === "string" ? args : JSON.stringify(args) },
});

function tool(name: string, run: (...args: Parameters<Tool["run"]>) => Promise<string>, timeoutMs = 60_000): Tool {
  const schema = z.object({ text: z.string().default("nothing"), times: z.int().min(1).max(9).optional() });
  return defineTool({
    name,
    description: `Does ${name}.`,
    schema,
    timeoutMs,
    run,
    describeCall: (args) => `${name} ${args.text}`,
  });
}

const echo = tool("echo", async (args) => JSON.stringify(args));
const result = async (toolCall: ToolCall, ...tools: Tool[]) =>
  (await callTool(toolCall, tools, context, never)).content;

describe("the definition of a tool", () => {
  test("a definition lists type, properties and required, and requires no argument with a default", () => {
    const schema = z.object({
      zone: z.string().describe("where"),
      format: z.enum(["a", "b"]).default("a"),
      deep: z.object({ list: z.array(z.string()) }).optional(),
    });
    const options = { description: "Tells.", schema, timeoutMs: 1, run: async () => "", describeCall: () => "" };
    expect(toDefinition(defineTool({ name: "tell", ...options }))).toEqual({
      type: "function",
      function: {
        name: "tell",
        description: "Tells.",
        parameters: {
          type: "object",
          properties: {
            zone: { type: "string", description: "where" },
            format: { type: "string", enum: ["a", "b"], default: "a" },
            deep: {
              type: "object",
              properties: { list: { type: "array", items: { type: "string" } } },
              required: ["list"],
            },
          },
          required: ["zone"],
        },
      },
    });
  });

  test("a definition without required arguments lists none", () => {
    expect(toDefinition(echo).function.parameters).toMatchObject({ type: "object", required: [] });
  });
});

describe("the call of a tool", () => {
  for (const empty of ["", "  ", "{}", "null", '""']) {
    test(`a call takes ${JSON.stringify(empty)} as no arguments`, async () => {
      await expect(result(call("echo", empty), echo)).resolves.toBe('{"text":"nothing"}');
    });
  }

  test("a call reads arguments that the model encoded twice", async () => {
    await expect(result(call("echo", JSON.stringify('{"text":"hi"}')), echo)).resolves.toBe('{"text":"hi"}');
  });

  test("a call of an unknown tool returns the names of the tools", async () => {
    const other = tool("other", async () => "");
    await expect(result(call('x"\n', {}), echo, other)).resolves.toBe(
      'There is no tool "x\\"\\n". The tools are: echo, other.',
    );
    await expect(result(call("x", {}))).resolves.toContain("The tools are: none.");
  });

  for (const json of ['{"text": "cut of', "text=hi", "[1,2", '"still not json"']) {
    test(`a call refuses ${json} because it is not JSON`, async () => {
      await expect(result(call("echo", json), echo)).resolves.toBe(
        "Not run: the arguments of echo are not valid JSON. Call it again with one JSON object.",
      );
    });
  }

  test("a call with an invalid argument does not run, and its result names the argument", async () => {
    let ran = false;
    const watched = tool("watched", async () => String((ran = true)));
    const content = await result(call("watched", { text: 1, times: 10 }), watched);
    expect(content).toMatch(/^Not run: the arguments of watched are invalid\. text: .*string.*; times: .*9.*corrected/);
    await expect(result(call("watched", "[]"), watched)).resolves.toMatch(/expected object/);
    expect(ran).toBe(false);
  });

  test("the model learns why a tool failed", async () => {
    const failing = tool("failing", () => Promise.reject(new ToolError("No such place. Try a city.")));
    await expect(result(call("failing", {}), failing)).resolves.toBe("No such place. Try a city.");
  });

  test("a ToolError of an acting tool counts as a failure, whenever it comes", async () => {
    const failing = tool("failing", () => Promise.reject(new ToolError("The till fell over.")));
    await expect(result(call("failing", {}), { ...failing, acts: true })).resolves.toBe("The till fell over.");
  });

  test("the log contains an unexpected error, whose message the model does not see", async () => {
    const failures: unknown[] = [];
    const error = new Error("redis://:canary@host refused");
    const throwing = tool("throwing", () => {
      throw error;
    });
    const onFailure = (name: string, cause: unknown) => void failures.push([name, cause]);
    const { content } = await callTool(call("throwing", {}), [throwing], { ...context, onFailure }, never);
    expect(content).toBe("throwing failed with an internal error. Answer without it, and say so.");
    expect(failures).toEqual([["throwing", error]]);
  });

  test("a call aborts a tool that never returns at its timeout", async () => {
    const stuck = tool("stuck", () => new Promise(() => {}), 10);
    await expect(result(call("stuck", {}), stuck)).resolves.toBe("stuck timed out. Answer without it, and say so.");
  });

  test("a call truncates a long result with a note, and not inside a character", async () => {
    const long = tool("long", async () => "😀".repeat(50_000));
    const content = await result(call("long", {}), long);
    expect(content.length).toBeLessThanOrEqual(MAX_RESULT_CHARS);
    expect(content.isWellFormed()).toBe(true);
    expect(content).toMatch(/😀\n\[truncated: the whole result has 100000 characters\]$/u);
  });

  test("a call never returns an empty result", async () => {
    await expect(
      result(
        call("silent", {}),
        tool("silent", async () => " \n"),
      ),
    ).resolves.toBe("(no output)");
  });

  test("a call rejects with the signal's reason even if the tool ignores it", async () => {
    const controller = new AbortController();
    const stuck = tool("stuck", () => new Promise(() => {}));
    const running = callTool(call("stuck", {}), [stuck], context, controller.signal);
    controller.abort("stopped");
    await expect(running).rejects.toBe("stopped");
    await expect(callTool(call("x", {}), [], context, controller.signal)).rejects.toBe("stopped");
  });
});

describe("several calls of tools", () => {
  test("several calls run in parallel, and their results are in order", async () => {
    const gate = Promise.withResolvers<void>();
    const first = tool("first", async () => gate.promise.then(() => "one"));
    const second = tool("second", async () => {
      gate.resolve();
      return "two";
    });
    const calls = [call("first", {}, "a"), call("second", {}, "b")];
    const results = await callTools(calls, [first, second], context, never, () => {});
    expect(results.map(({ tool_call_id, content }) => [tool_call_id, content])).toEqual([
      ["a", "one"],
      ["b", "two"],
    ]);
  });

  test("every call has a result, even if ids repeat or are missing", async () => {
    const calls = ["x", "x", ""].map((id, index) => call("echo", { text: String(index) }, id));
    const results = await callTools(calls, [echo], context, never, () => {});
    expect(results.map(({ tool_call_id }) => tool_call_id)).toEqual(["x", "x", ""]);
    expect(results.map(({ content }) => content)).toEqual(['{"text":"0"}', '{"text":"1"}', '{"text":"2"}']);
  });

  test("four calls run at once, and the bot refuses calls beyond sixteen", async () => {
    let running = 0;
    let most = 0;
    const busy = tool("busy", async () => {
      most = Math.max(most, ++running);
      await new Promise(setImmediate);
      running--;
      return "done";
    });
    const calls = Array.from({ length: 18 }, () => call("busy", {}));
    const contents = (await callTools(calls, [busy], context, never, () => {})).map(({ content }) => content);
    expect(most).toBe(4);
    expect(contents.filter((content) => content === "done")).toHaveLength(16);
    expect(contents.at(-1)).toMatch(/^Not run: at most 16 calls/);
  });

  test("the bot reports each running call with its outcome", async () => {
    const gates = new Map(["a", "b"].map((text) => [text, Promise.withResolvers<void>()]));
    const steps: string[] = [];
    const wait = tool("wait", async (args, { onProgress }) => {
      const { text } = args as { text: string };
      onProgress?.(`waiting for ${text}`);
      await gates.get(text)?.promise;
      if (text === "b") throw new ToolError("There is no b.");
      return "";
    });
    const calls = [call("wait", { text: "a" }), call("missing", {}), call("wait", { text: "b" })];
    await callTools(calls, [wait], context, never, ({ id, title, state }) => {
      steps.push(`${id} ${title}: ${state}`);
      if (title === "waiting for b") gates.get("a")?.resolve();
      if (title === "waiting for a" && state === "done") gates.get("b")?.resolve();
    });
    expect(steps).toEqual([
      "0 wait a: running",
      "0 waiting for a: running",
      "2 wait b: running",
      "2 waiting for b: running",
      "0 waiting for a: done",
      "2 waiting for b: failed",
    ]);
  });

  test("a step is titled with the model's words on one short line, or with the tool's name", async () => {
    const shown = new Set<string>();
    const mute: Tool = { ...echo, name: "mute", describeCall: () => JSON.parse("{") };
    const calls = [call("echo", { text: `a\n\u202eb${"c".repeat(500)}` }), call("mute", {})];
    await callTools(calls, [echo, mute], context, never, ({ title }) => void shown.add(title));
    expect([...shown]).toEqual([expect.stringMatching(/^echo a bc{111}…$/), "using mute"]);
  });

  test("calls reject with the signal's reason, and no further call starts", async () => {
    const controller = new AbortController();
    const all = Promise.withResolvers<void>();
    let begun = 0;
    const stuck = tool("stuck", () => {
      if (++begun === 4) all.resolve();
      return new Promise(() => {});
    });
    const calls = Array.from({ length: 10 }, () => call("stuck", {}));
    const running = callTools(calls, [stuck], context, controller.signal, () => {});
    await all.promise;
    controller.abort("stopped");
    await expect(running).rejects.toBe("stopped");
    expect(begun).toBe(4);
  });
});
