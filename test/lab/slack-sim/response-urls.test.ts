import { describe, expect, test } from "vitest";
import { createClock } from "../../../lab/slack-sim/clock.ts";
import type { Json } from "../../../lab/slack-sim/world.ts";
import { startGeneral } from "../../support/slack.ts";

async function startCommand() {
  const { slack, ada, general } = await startGeneral({ clock: createClock({ isFrozen: true }) });
  await ada.command("/imagine", "a cat", general);
  const url = String(slack.deliveries.at(-1)?.payload["response_url"]);
  async function respond(body: Json): Promise<[number, string]> {
    const response = await fetch(url, { method: "POST", body: JSON.stringify(body) });
    return [response.status, await response.text()];
  }
  const ephemerals = () => slack.ephemerals(general, ada.id).map(({ shown }) => shown);
  return { slack, general, respond, ephemerals };
}

describe("response URLs of the Slack simulator", () => {
  test("a response URL answers the person alone, or everyone on request", async () => {
    const { slack, general, respond, ephemerals } = await startCommand();
    expect(await respond({ text: "drawing" })).toEqual([200, "ok"]);
    expect(await respond({ text: "here", response_type: "in_channel" })).toEqual([200, "ok"]);
    expect(ephemerals()).toEqual(["drawing"]);
    expect(slack.texts(general)).toEqual(["here"]);
  });

  test("a response URL can replace its earlier answer", async () => {
    const { respond, ephemerals } = await startCommand();
    await respond({ text: "drawing" });
    await respond({ text: "done", replace_original: true });
    expect(ephemerals()).toEqual(["done"]);
  });

  test("a response URL accepts five answers", async () => {
    const { respond, ephemerals } = await startCommand();
    for (const text of ["1", "2", "3", "4", "5"]) expect(await respond({ text })).toEqual([200, "ok"]);
    expect(await respond({ text: "6" })).toEqual([404, '{"ok":false,"error":"used_url"}']);
    expect(ephemerals()).toEqual(["1", "2", "3", "4", "5"]);
  });

  test("a response URL is valid for half an hour", async () => {
    const { slack, respond } = await startCommand();
    slack.advance(1_800_000);
    expect(await respond({ text: "just in time" })).toEqual([200, "ok"]);
    slack.advance(1);
    expect(await respond({ text: "late" })).toEqual([404, '{"ok":false,"error":"expired_url"}']);
  });
});
