import { describe, expect, test } from "vitest";
import { createClock } from "../../../../lab/slack-sim/clock.ts";
import { callApi, errorOf } from "../../../../lab/slack-sim/web-api.ts";
import type { Json } from "../../../../lab/slack-sim/world.ts";
import { startSlack } from "../../../support/slack.ts";

const modal = (fields: Json = {}): Json => ({
  type: "modal",
  title: { type: "plain_text", text: "Imagine" },
  blocks: [],
  ...fields,
});

async function startTrigger() {
  const slack = await startSlack({ clock: createClock({ isFrozen: true }) });
  const ada = slack.user({ name: "Ada" });
  /** A trigger from a delivery. No app receives the delivery. */
  const trigger = () => {
    void ada.shortcut("imagine");
    return slack.deliveries.at(-1)?.payload["trigger_id"];
  };
  const open = (trigger_id: unknown, view = modal()) => errorOf(slack, "views.open", { trigger_id, view });
  return { slack, ada, trigger, open };
}

describe("the simulated methods of views", () => {
  test("a trigger opens one view", async () => {
    const { slack, ada, trigger, open } = await startTrigger();
    const once = trigger();
    expect(await open(once)).toBe("ok");
    expect(slack.view(ada)?.body).toEqual(modal());
    expect(await open(once)).toBe("exchanged_trigger_id");
    expect(await open("1.2.3")).toBe("invalid_trigger_id");
  });

  test("a trigger is valid for three seconds", async () => {
    const { slack, trigger, open } = await startTrigger();
    const first = trigger();
    slack.advance(3_000);
    expect(await open(first)).toBe("ok");
    const second = trigger();
    slack.advance(3_001);
    expect(await open(second)).toBe("expired_trigger_id");
  });

  test("a view is limited in size", async () => {
    const { trigger, open } = await startTrigger();
    const openWith = (fields: Json) => open(trigger(), modal(fields));
    expect(await openWith({ title: { type: "plain_text", text: "x".repeat(25) } })).toBe("invalid_arguments");
    expect(await openWith({ private_metadata: "x".repeat(3_001) })).toBe("invalid_arguments");
    expect(await openWith({ blocks: Array.from({ length: 101 }, () => ({ type: "divider" })) })).toBe(
      "invalid_arguments",
    );
    expect(await openWith({ blocks: [{ type: "markdown", text: "x" }] })).toBe("invalid_arguments");
    expect(await openWith({ blocks: [{ type: "input" }] })).toBe("invalid_arguments");
    expect(await openWith({ type: "home" })).toBe("invalid_arguments");
    expect(await openWith({ blocks: [{ type: "input" }], submit: { type: "plain_text", text: "Go" } })).toBe("ok");
  });

  test("an app can push a view on another, up to three", async () => {
    const { slack, ada, trigger, open } = await startTrigger();
    const push = () => errorOf(slack, "views.push", { trigger_id: trigger(), view: modal() });
    expect(await push()).toBe("not_found");
    await open(trigger());
    expect([await push(), await push(), await push()]).toEqual(["ok", "ok", "push_limit_reached"]);
    expect(slack.view(ada)?.previousId).toBeDefined();
  });

  test("an app updates a view by id if its hash is the newest", async () => {
    const { slack, trigger } = await startTrigger();
    const { body } = await callApi(slack, "views.open", { trigger_id: trigger(), view: modal() });
    const { id, hash } = body["view"] as Json;
    const update = (fields: Json) => errorOf(slack, "views.update", { view_id: id, view: modal(), ...fields });
    expect(await update({ hash })).toBe("ok");
    expect(await update({ hash })).toBe("hash_conflict");
    expect(await update({})).toBe("ok");
    expect(await update({ view_id: "V404" })).toBe("not_found");
  });

  test("an app publishes a home tab per person", async () => {
    const { slack, ada } = await startTrigger();
    const publish = (fields: Json) =>
      errorOf(slack, "views.publish", { user_id: ada.id, view: { type: "home", blocks: [] }, ...fields });
    expect(await publish({})).toBe("ok");
    expect(slack.home(ada)?.body).toEqual({ type: "home", blocks: [] });
    expect(await publish({ hash: "old" })).toBe("hash_conflict");
    expect(await publish({ user_id: "U404" })).toBe("user_not_found");
    expect(await publish({ view: modal() })).toBe("invalid_arguments");
  });
});
