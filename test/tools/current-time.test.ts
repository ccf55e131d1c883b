import { describe, expect, test } from "vitest";
import { fakeServices } from "../../lab/support/services.ts";
import { createCurrentTime } from "../../src/tools/current-time.ts";
import type { ToolDeps } from "../../src/tools/tool.ts";
import { askTool, callTools } from "../support/tool-calls.ts";

const NOW = Date.UTC(2026, 6, 3, 20, 5, 9, 750);
const never = new AbortController().signal;
const currentTime = createCurrentTime(fakeServices<ToolDeps>({ now: () => NOW }));

const ask = (args: object) => askTool(currentTime, args);

describe("current_time", () => {
  for (const [args, expected] of [
    [{}, "2026-07-03T20:05:09+00:00 (UTC)"],
    [{ zone: "Asia/Tokyo" }, "2026-07-04T05:05:09+09:00 (Asia/Tokyo)"],
    [{ zone: "america/new_york" }, "2026-07-03T16:05:09-04:00 (America/New_York)"],
    [{ zone: "Asia/Kolkata", format: "time" }, "01:35:09 (Asia/Kolkata)"],
    [{ zone: "Asia/Tokyo", format: "date" }, "2026-07-04 (Asia/Tokyo)"],
    [{ zone: "Asia/Tokyo", format: "weekday" }, "Saturday (Asia/Tokyo)"],
    [{ zone: "+05:30", format: "time" }, "01:35:09 (+05:30)"],
    [{ zone: "Asia/Tokyo", format: "unix" }, "1783109109"],
  ] as const) {
    test(`current_time answers ${JSON.stringify(args)} with ${expected}`, async () => {
      await expect(ask(args)).resolves.toBe(expected);
    });
  }

  for (const [zone, near] of [
    ["Tokyo", "Asia/Tokyo"],
    ["New York", "America/New_York"],
    ["tokyo, japan", "Asia/Tokyo"],
    ["Asia/Tokio", "Asia/Tokyo"],
    ["Europe/Berln", "Europe/Berlin"],
    ["Kyiv", "Europe/Kyiv"],
    ["Mumbai/Kolkata", "Asia/Kolkata"],
  ] as const) {
    test(`current_time suggests ${near} for ${zone}`, async () => {
      const text = await ask({ zone });
      expect(text).toContain(`There is no time zone ${JSON.stringify(zone)}. Similar names: `);
      expect(text).toContain(near);
    });
  }

  test("current_time explains the form of a zone name if no similar name exists", async () => {
    await expect(ask({ zone: "Qwxzkptlm" })).resolves.toBe(
      'There is no time zone "Qwxzkptlm". Use an IANA name such as "Europe/Berlin". Call the tool again with one of the right names.',
    );
  });

  test("the step of current_time names the city", async () => {
    const shown: string[] = [];
    const call = {
      id: "1",
      type: "function",
      function: { name: "current_time", arguments: '{"zone":"America/New_York"}' },
    } as const;
    await callTools(
      [call],
      [currentTime],
      { conversationId: "c" },
      never,
      ({ title, state }) => void (state === "running" && shown.push(title)),
    );
    expect(shown).toEqual(["looking up the time in New York"]);
  });
});
