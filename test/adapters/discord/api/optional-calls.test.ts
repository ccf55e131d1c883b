import { Routes } from "discord.js";
import { describe, expect, test } from "vitest";
import { createApi } from "../../../../adapters/discord/api/client.ts";
import { ApiError } from "../../../../adapters/discord/api/error.ts";
import { createOptionalCalls } from "../../../../adapters/discord/api/optional-calls.ts";
import { startDiscord } from "../../../support/discord.ts";
import { signal, startStage } from "../stage.ts";

const call = { method: "GET", route: "/channels/1/messages" } as const;

describe("optional calls to Discord", () => {
  test("the client skips optional calls before Discord would refuse one", async () => {
    const discord = await startDiscord({ limits: { other: { kind: "fixed", limit: 5, windowMs: 600_000 } } });
    const { channel } = await startStage({ discord, listens: false });
    const api = createApi({ token: discord.token, apiUrl: discord.apiUrl, onUnauthorized: () => {}, now: Date.now });
    const calls = createOptionalCalls(api, { firstCalls: 3, reserve: 1 });
    const read = () => calls.call(channel.id, { method: "GET", route: Routes.channelMessages(channel.id) }, signal);
    const first = await Promise.all(Array.from({ length: 10 }, read));
    const later = await Promise.all(Array.from({ length: 10 }, read));
    expect(first.filter((answer) => answer !== undefined)).toHaveLength(3);
    expect(later.filter((answer) => answer !== undefined)).toHaveLength(1);
    expect(discord.violations).toEqual([]);
  });

  test("the client skips optional calls in the one channel in which Discord asks it to wait", async () => {
    let asked = 0;
    const calls = createOptionalCalls(
      {
        async call() {
          asked += 1;
          throw new ApiError("Too many.", { status: 429, code: 0, retryAfterMs: 60_000 });
        },
      },
      { firstCalls: 3 },
    );
    for (let index = 0; index < 3; index++) expect(await calls.call("a", call, signal)).toBeUndefined();
    expect(asked).toBe(1);
    expect(await calls.call("b", call, signal)).toBeUndefined();
    expect(asked).toBe(2);
  });

  test("an optional call rejects if it fails for another reason than a limit", async () => {
    const calls = createOptionalCalls({ call: () => Promise.reject(new Error("Missing Access")) }, { firstCalls: 3 });
    for (let index = 0; index < 5; index++)
      await expect(calls.call("a", call, signal)).rejects.toThrow("Missing Access");
  });
});
