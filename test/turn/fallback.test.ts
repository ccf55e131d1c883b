import { describe, expect, test } from "vitest";
import { startEngine } from "../../lab/support/engine.ts";
import { action, message } from "../../lab/support/events.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { start as startSandbox } from "../sandbox/sandbox.ts";
import {
  type Answer,
  cut,
  drop,
  good,
  ROLE,
  rateLimit,
  refusal,
  startFaultServer,
  words,
} from "../support/fault-server.ts";
import { connect } from "../support/gateway-client.ts";

/** The bot with a first gateway that responds as given, and with the strict sandbox as the second one. */
async function start(first: Answer[], fallbackModel?: string) {
  const [one, sandbox] = [await startFaultServer(...first), await startSandbox()];
  const second = { baseUrl: sandbox.url, apiKey: "sk-sandbox-all" };
  const gateway = connect(one.url, { second, fallbackModel });
  const platform = fakePlatform({ traits: { secondThoughts: true } });
  return startEngine({ gateway, platform, model: "sandbox-chat" });
}

describe("an answer from a fallback", () => {
  test("an answer from a fallback says so in its last line, and in its explanation", async () => {
    const { handle, texts, metrics } = await start([rateLimit({ "retry-after": "600" })]);
    const question = await handle(message("Say hello."));
    expect(texts()).toHaveLength(1);
    expect(texts()[0]).toMatch(
      /\n\n_Answered by the second AI service, because `sandbox-chat` is at its rate limit\._$/,
    );
    await handle(action("explain", toTurnId(question.key)));
    expect(texts().at(-1)).toContain(
      "- Model: `sandbox-chat` of the second AI service, because `sandbox-chat` is at its rate limit",
    );
    expect((await metrics.render()).body).toContain('palaver_gateway_detours_total{to="gateway"} 1');
  });

  test("an answer says if the first AI service cannot be reached", async () => {
    const { handle, texts } = await start([drop], "sandbox-text");
    await handle(message("Say hello."));
    expect(texts()[0]).toMatch(/_Answered by the second AI service, because I couldn't reach the first one\._$/);
  });

  test("an answer from a fallback names the other model", async () => {
    const { handle, texts, usage } = await start([refusal(503, "busy"), refusal(503, "busy"), good], "small");
    await handle(message("Say hello."));
    expect(texts()).toEqual(["Hello\n\n_Answered by `small`, because `sandbox-chat` didn't answer._"]);
    const rows = await usage.readTable("everyone");
    expect(rows.map(({ model, requests }) => [model, requests])).toContainEqual(["small", 1]);
  });

  test("no fallback answers once the first model has started: the answer breaks off and says why", async () => {
    const { handle, texts } = await start([cut(ROLE, words("Once upon a"))]);
    await handle(message("Tell me a story."));
    expect(texts()).toHaveLength(1);
    expect(texts()[0]).toMatch(/^Once upon a\n\n_The answer broke off before it was finished\./);
  });
});
