import { describe, expect, test } from "vitest";
import { message } from "../../lab/support/events.ts";
import { recordingLog } from "../../lab/support/log.ts";
import { createArrivals } from "../../src/app/arrivals.ts";

describe("the first messages of platforms", () => {
  test("the service reports the first message of a platform once, in its log and at /arrivals", async () => {
    const { log, lines } = recordingLog();
    const slack = { platform: "slack", isConnected: () => true };
    const discord = { platform: "discord", isConnected: () => false };
    const { watch, routes } = createArrivals(() => [slack, discord], log);
    const read = async () => (await routes.request("/arrivals")).json();
    expect(await read()).toEqual({ slack: "connected", discord: "connecting" });
    const accept = watch(slack, async () => {});
    for (const text of ["hello", "again"]) await accept(message(text));
    expect(await read()).toEqual({ slack: "heard", discord: "connecting" });
    expect(lines.map(({ msg }) => msg)).toEqual(["The first message from Slack has arrived"]);
  });

  test("the service reports no message that it could not store, and does not log those of the local page", async () => {
    const { log, lines } = recordingLog();
    const page = { platform: "local", isOwn: true as const, isConnected: () => true };
    const { watch, routes } = createArrivals(() => [page], log);
    const refusing = watch(page, () => Promise.reject(new Error("the disk is full")));
    await expect(refusing(message("hello"))).rejects.toThrow("the disk is full");
    expect(await (await routes.request("/arrivals")).json()).toEqual({ local: "connected" });
    await watch(page, async () => {})(message("hello"));
    expect(lines).toEqual([]);
  });
});
