import { describe, expect, test } from "vitest";
import { createStatus, insist } from "../../src/imagine/status.ts";
import { SinkError } from "../../src/port/errors.ts";
import type { Draft } from "../../src/port/sink.ts";
import { fakePlatform } from "../support/fake-platform.ts";

const { signal } = new AbortController();
const draft = (markdown: string): Draft => ({ markdown, buttons: [], streaming: false });

async function start() {
  const platform = fakePlatform();
  const { id } = await platform.sink.post(draft("0"), "nonce", signal);
  return { ...platform, status: createStatus(platform.sink, id) };
}

describe("the status message", () => {
  test("shows the newest text, one call at a time, and skips what is older", async () => {
    const { status, calls, texts, setTrouble, violations } = await start();
    const hold = Promise.withResolvers<void>();
    setTrouble(() => hold.promise);
    for (const text of ["1", "2", "3"]) status.show(draft(text));
    setTrouble(() => undefined);
    hold.resolve();
    await status.close(draft("end"), signal);
    status.show(draft("late"));
    expect(texts()).toEqual(["end"]);
    expect(calls).toEqual(["post", "edit", "edit"]);
    expect(violations).toEqual([]);
  });

  test("says its last word also when the platform asked for time", async () => {
    const { status, texts, setTrouble } = await start();
    let refusals = 2;
    setTrouble(() => (refusals-- > 0 ? { kind: "rate-limited", retryAfterMs: 1 } : undefined));
    await status.close(draft("end"), signal);
    expect(texts()).toEqual(["end"]);
  });

  test("is not missed when somebody took it away", async () => {
    const { status, sink, channel } = await start();
    await sink.remove(channel[0]?.id ?? "", signal);
    await status.close(draft("end"), signal);
    expect(channel).toEqual([]);
  });

  test("goes when there is nothing left to say", async () => {
    const { status, channel } = await start();
    await status.close(undefined, signal);
    expect(channel).toEqual([]);
  });
});

describe("insisting", () => {
  test("ends at once with what is refused for good, and with the signal", async () => {
    let calls = 0;
    const refuse = (kind: "forbidden" | "unavailable") => async () => {
      calls += 1;
      throw new SinkError(kind, "no");
    };
    await expect(insist(refuse("forbidden"), signal)).rejects.toThrow("no");
    expect(calls).toBe(1);
    const controller = new AbortController();
    const insisting = insist(refuse("unavailable"), controller.signal);
    controller.abort(new Error("shutdown"));
    await expect(insisting).rejects.toThrow("shutdown");
  });
});
