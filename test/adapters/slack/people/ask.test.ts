import { describe, expect, test } from "vitest";
import { SlackApiError } from "../../../../adapters/slack/api/error.ts";
import { createAsk } from "../../../../adapters/slack/people/ask.ts";
import { silent } from "../../../support/log.ts";
import { ACME } from "../workspace.ts";

function start(answer: () => Promise<Readonly<Record<string, unknown>>>) {
  let nowMs = 0;
  let calls = 0;
  const call = () => {
    calls += 1;
    return answer();
  };
  const ask = createAsk({ api: { call }, log: silent, now: () => nowMs });
  return {
    look: () => ask(ACME, "users.info", { user: "U1" }, ({ user }) => user),
    calls: () => calls,
    wait: (ms: number) => void (nowMs += ms),
  };
}

describe("looking people up", () => {
  test("stays below what Slack allows in a minute", async () => {
    const { look, calls, wait } = start(async () => ({ user: "Ada" }));
    for (let count = 0; count < 200; count++) await look();
    expect(calls()).toBe(80);
    expect(await look()).toBeUndefined();
    wait(60_001);
    expect(await look()).toBe("Ada");
  });

  test("waits for as long as Slack asks, without asking it", async () => {
    const refusal = { code: "ratelimited", status: 429, retryAfterMs: 30_000 };
    const { look, calls, wait } = start(() => Promise.reject(new SlackApiError("users.info", "Wait.", refusal)));
    expect(await look()).toBeUndefined();
    wait(29_000);
    await look();
    expect(calls()).toBe(1);
    wait(2_000);
    await look();
    expect(calls()).toBe(2);
  });
});
