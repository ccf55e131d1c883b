import { describe, expect, test } from "vitest";
import type { ChatRequest } from "../../src/gateway/request.ts";
import { DIALECTS } from "../../src/sandbox/thinking.ts";
import { connect, open, readAnswer } from "../support/gateway-client.ts";
import { contentOf, post, start } from "./sandbox.ts";

const QUESTION = "say: yes";

async function ask(content: string, fields: Partial<ChatRequest> = {}, model = "sandbox-chat") {
  const { url } = await start();
  const gateway = connect(url, {
    apiKey: "sk-sandbox-all",
    extraBody: { all: { stream_options: { include_usage: true } }, models: new Map() },
  });
  const { text, chunks, error } = await readAnswer(
    gateway,
    { model, messages: [{ role: "user", content }], ...fields },
    open,
  );
  const choices = chunks.flatMap(({ choices }) => choices);
  const thought = choices.map(({ delta }) => delta.reasoning ?? "").join("");
  const isThinking = choices.some(({ delta }) => delta.reasoning !== undefined);
  const finish = choices.at(-1)?.finish_reason;
  return { text, thought, isThinking, finish, usage: chunks.at(-1)?.usage, error };
}

describe("a model that thinks before it answers", () => {
  test.each(Object.keys(DIALECTS))("sends it %s, and the client tells it from the answer", async (dialect) => {
    for (const model of ["sandbox-chat", "sandbox-chat:json", "sandbox-chat:bytes"]) {
      const plain = await ask(QUESTION);
      const { text, thought, isThinking, usage, error } = await ask(
        `sandbox thinking: ${dialect}\n${QUESTION}`,
        {},
        model,
      );
      expect({ text, isThinking, error }).toEqual({ text: "yes", isThinking: true, error: undefined });
      if (dialect === "hidden") expect(thought).toBe("");
      else expect(thought.trim()).toMatch(/^I am asked: "say: yes"\..*What is left is the answer\.$/s);
      expect(usage?.completion_tokens).toBeGreaterThan((plain.usage?.completion_tokens ?? 0) + 20);
    }
  });

  test("does so for effort that is asked of it, and not for none", async () => {
    const { url } = await start();
    const say = async (reasoning_effort: string) => {
      const messages = [{ role: "user", content: QUESTION }];
      const answer = await post(`${url}/v1/chat/completions`, { model: "sandbox-chat", messages, reasoning_effort });
      const { choices } = (await answer.json()) as { choices: Array<{ message: object }> };
      return choices[0]?.message;
    };
    expect(await say("low")).toMatchObject({
      content: "yes",
      reasoning_content: expect.stringContaining("I am asked"),
    });
    expect(await say("none")).not.toHaveProperty("reasoning_content");
  });

  test("takes back what it thought with the answer, and ignores it", async () => {
    const { url } = await start();
    const say = (messages: object[]) => post(`${url}/v1/chat/completions`, { model: "sandbox-chat", messages });
    for (const dialect of ["reasoning_content", "reasoning", "reasoning_details", "hidden"]) {
      const asked = { role: "user", content: `sandbox thinking: ${dialect}\n${QUESTION}` };
      const answer = (await (await say([asked])).json()) as { choices: Array<{ message: object }> };
      const message = answer.choices[0]?.message ?? {};
      expect(Object.keys(message).join(" ")).toContain("reasoning");
      expect(await contentOf(say([asked, message, { role: "user", content: "say: more" }]))).toBe("more");
    }
    const empty = { reasoning_content: null, reasoning: null, reasoning_details: null };
    const messages = [
      { role: "assistant", content: "yes", ...empty },
      { role: "user", content: "say: more" },
    ];
    expect(await contentOf(say(messages))).toBe("more");
  });

  test("may use up the greatest length with it", async () => {
    for (const dialect of ["reasoning", "think"]) {
      const { text, finish, thought } = await ask(`sandbox thinking: ${dialect}\n${QUESTION}`, { max_tokens: 8 });
      expect({ text, finish }).toEqual({ text: "", finish: "length" });
      expect(thought).not.toBe("");
    }
  });

  test("lists its ways where they are asked for, or where a name is none of them", async () => {
    const { url } = await start();
    for (const content of ["sandbox thinking", "sandbox thinking: aloud, say: yes"]) {
      const request = { model: "sandbox-chat", messages: [{ role: "user", content }] };
      expect(await contentOf(post(`${url}/v1/chat/completions`, request))).toContain("- `reasoning_content` in");
    }
  });
});
