import { describe, expect, test } from "vitest";
import { startBolt } from "../../support/bolt-app.ts";
import { startSlack } from "../../support/slack.ts";

async function startEar() {
  const slack = await startSlack();
  const ada = slack.user({ name: "Ada" });
  const heard: string[] = [];
  const envelopes: unknown[] = [];
  await startBolt(slack, (app) => {
    app.event("message", async ({ event, context, body }) => {
      heard.push(`${"text" in event ? event.text : event.subtype} ${context.retryNum}`);
      envelopes.push(body.event_id);
    });
  });
  return { slack, ada, heard, envelopes };
}

describe("deliveries of the Slack simulator", () => {
  test("`redeliver` repeats a delivery with the same event id", async () => {
    const { slack, ada, heard, envelopes } = await startEar();
    const question = ada.dm("hi");
    await slack.acknowledged();
    await slack.redeliver(question);
    await slack.until(() => heard.length === 2 && heard);
    expect(heard).toEqual(["hi 0", "hi 1"]);
    expect(new Set(envelopes).size).toBe(1);
  });

  test("`hold` keeps deliveries back and releases them in another order", async () => {
    const { slack, ada, heard } = await startEar();
    const release = slack.hold();
    ada.dm("one");
    ada.dm("two");
    expect(heard).toEqual([]);
    release("reversed");
    await slack.acknowledged();
    expect(heard).toEqual(["two 0", "one 0"]);
  });

  test("the simulator sends an envelope without an event after too many events", async () => {
    const slack = await startSlack();
    const { payload } = slack.reachEventLimit();
    expect(payload).toMatchObject({ type: "app_rate_limited", team_id: slack.workspace.id });
    expect(payload).not.toHaveProperty("event");
  });

  test("the simulator does not judge deliveries in flight when it closes", async () => {
    const slack = await startSlack();
    const ada = slack.user({ name: "Ada" });
    ada.dm("nobody hears this");
    await slack.close();
    expect(slack.violations).toEqual([]);
  });
});
