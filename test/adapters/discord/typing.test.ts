import { describe, expect, test, vi } from "vitest";
import type { Api } from "../../../adapters/discord/api.ts";
import { createTyping } from "../../../adapters/discord/typing.ts";

describe("the sign that the bot is writing", () => {
  test("is repeated before Discord takes it away, until it is stopped", () => {
    vi.useFakeTimers();
    try {
      let shown = 0;
      const api: Api = { call: async () => ({ data: (shown += 1) }), settled: async () => {} };
      const typing = createTyping(api, "1");
      typing.start();
      typing.start();
      vi.advanceTimersByTime(24_000);
      expect(shown).toBe(4);
      typing.stop();
      vi.advanceTimersByTime(60_000);
      expect(shown).toBe(4);
    } finally {
      vi.useRealTimers();
    }
  });

  test("ends by itself when nothing comes", () => {
    vi.useFakeTimers();
    try {
      let shown = 0;
      const api: Api = { call: async () => ({ data: (shown += 1) }), settled: async () => {} };
      createTyping(api, "1").start();
      vi.advanceTimersByTime(3_600_000);
      expect(shown).toBeLessThan(40);
    } finally {
      vi.useRealTimers();
    }
  });
});
