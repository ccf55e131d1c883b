import { describe, expect, test } from "vitest";
import type { ChatMessage } from "../../src/gateway/chunks.ts";
import { describeDropped } from "../../src/turn/dropped.ts";
import { startEngine } from "../support/engine.ts";
import { command, message } from "../support/events.ts";
import { events, json, startFaultServer, stream } from "../support/fault-server.ts";
import { connect } from "../support/gateway-client.ts";

const picture: ChatMessage = { role: "user", content: [{ type: "image_url", image_url: { url: "https://a.test/b" } }] };
const answer: ChatMessage = { role: "assistant", content: "Hello." };
const words: ChatMessage = { role: "user", content: "Hello?" };

describe("what the model did not accept", () => {
  test("is named under the answer if the channel had asked for it", async () => {
    const message400 = "Unsupported parameter: 'temperature' is not supported with this model.";
    const error = { message: message400, type: "invalid_request_error", code: "unsupported_parameter" };
    const refuse = json(400, { error: { ...error, param: "temperature" } });
    const { url } = await startFaultServer((response, received) => {
      const isWarm = (received.json as { temperature?: number } | undefined)?.temperature !== undefined;
      return (isWarm ? refuse : events(stream("Hello.")))(response, received);
    });
    const { accept, idle, texts } = startEngine({ gateway: connect(url), model: "m" });
    await accept(command("model", "--temperature 0.5"));
    for (const question of ["Hi", "Hi again"]) {
      await accept(message(question));
      await idle();
    }
    const note = "_The model `m` does not accept a temperature, so it answered with its own._";
    expect(texts().slice(1)).toEqual([`Hello.\n\n${note}`, `Hello.\n\n${note}`]);
  });

  test("is not mentioned if the channel and the question did not need it", () => {
    const names = new Set(["temperature", "max_tokens", "response_format", "pictures", "tools", "user"]);
    const messages = [picture, answer, words];
    expect(describeDropped(names, { model: "m", options: {}, messages })).toBe("");
    expect(describeDropped(new Set(), { model: "m", options: { temperature: 1 }, messages: [picture] })).toBe("");
  });

  test("is one line, also if it is several things", () => {
    const names = new Set(["pictures", "max_tokens", "response_format"]);
    const options = { maxTokens: 100, format: "json" as const };
    expect(describeDropped(names, { model: "m", options, messages: [answer, picture, words] })).toBe(
      "_The model `m` does not accept this length limit, so it answered with its own. It does not support JSON answers, so I could only ask for JSON in words. It cannot see pictures, so it answered from the words alone._",
    );
  });
});
