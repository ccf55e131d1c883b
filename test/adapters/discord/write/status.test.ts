import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { Api } from "../../../../adapters/discord/api/client.ts";
import { ApiError } from "../../../../adapters/discord/api/error.ts";
import { createTypings } from "../../../../adapters/discord/write/status.ts";

function start(fail?: () => Error) {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const shown: string[] = [];
  const api: Api = {
    async call({ route }) {
      shown.push(route);
      const error = fail?.();
      if (error !== undefined) throw error;
      return { data: undefined };
    },
    settled: async () => {},
  };
  return { shown, typingIn: createTypings(api) };
}

describe("the typing indicator", () => {
  test("the bot repeats the typing indicator before Discord removes it, until it is stopped", () => {
    const { shown, typingIn } = start();
    const typing = typingIn("1");
    typing.start();
    typing.start();
    vi.advanceTimersByTime(24_000);
    expect(shown).toHaveLength(4);
    typing.stop();
    vi.advanceTimersByTime(60_000);
    expect(shown).toHaveLength(4);
  });

  test("the bot stops repeating the typing indicator after a while if no text comes", () => {
    const { shown, typingIn } = start();
    typingIn("1").start();
    vi.advanceTimersByTime(3_600_000);
    expect(shown.length).toBeLessThan(40);
  });

  test("all answers in a channel share the typing indicator, which lasts until the last answer has started", () => {
    const { shown, typingIn } = start();
    const typings = Array.from({ length: 20 }, () => typingIn("1"));
    for (const typing of [...typings, typingIn("2")]) typing.start();
    expect(shown).toEqual(["/channels/1/typing", "/channels/2/typing"]);
    for (const typing of typings.slice(1)) typing.stop();
    vi.advanceTimersByTime(8_000);
    expect(shown.filter((route) => route === "/channels/1/typing")).toHaveLength(2);
    typings[0]?.stop();
    vi.advanceTimersByTime(60_000);
    expect(shown.filter((route) => route === "/channels/1/typing")).toHaveLength(2);
  });

  test("the bot shows the typing indicator no faster than Discord accepts it, however short the answers", () => {
    const { shown, typingIn } = start();
    for (let count = 0; count < 50; count++) {
      const typing = typingIn("1");
      typing.start();
      vi.advanceTimersByTime(100);
      typing.stop();
    }
    expect(shown.length).toBeLessThanOrEqual(3);
  });

  test("the bot requests no typing indicator before the end of a wait that Discord asked for", async () => {
    const refusal = new ApiError("slower", { status: 429, code: 0, retryAfterMs: 20_000 });
    const { shown, typingIn } = start(() => refusal);
    typingIn("1").start();
    await vi.advanceTimersByTimeAsync(10);
    typingIn("1").start();
    await vi.advanceTimersByTimeAsync(19_000);
    expect(shown).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(shown).toHaveLength(2);
  });
});
