import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { type Dialect, toToldAnswer, toToldEvent } from "../../../lab/slack-sim/dialect.ts";
import { createWebClient, postMessage } from "../../../lab/slack-sim/web-api.ts";
import type { Json } from "../../../lab/slack-sim/world.ts";
import { startSlack } from "../../support/slack.ts";

const PAYLOAD = {
  team_id: "T1",
  authorizations: [{ team_id: "T1" }],
  event_time: 5,
  event: {
    type: "message",
    channel: "C1",
    channel_type: "channel",
    subtype: "message_changed",
    message: { ts: "1.0", text: "new", client_msg_id: "x" },
    previous_message: { ts: "1.0", text: "old" },
  },
};

describe("the usual dialect", () => {
  test("the usual dialect sends all fields", () => {
    expect(toToldEvent(PAYLOAD, "usual")).toBe(PAYLOAD);
    expect(toToldAnswer("chat.update", { ok: true, ts: "1.0" }, "usual").parts).toEqual(['{"ok":true,"ts":"1.0"}']);
  });
});

describe("the spare dialect", () => {
  test("the spare dialect sends only the required fields of an event, in another order", () => {
    const told = toToldEvent(PAYLOAD, "spare");
    const message = { text: "new", ts: "1.0" };
    expect(told).toEqual({
      event: { message, subtype: "message_changed", channel: "C1", type: "message" },
      event_time: "5",
      team_id: "T1",
    });
    expect(Object.keys(told)).toEqual(["event", "event_time", "team_id"]);
  });

  test("the spare dialect answers compressed, in pieces, with a warning, and with only the required fields", () => {
    const { parts, headers } = toToldAnswer(
      "chat.update",
      { ok: true, ts: "1.0", message: {}, channel: "C1" },
      "spare",
    );
    const body = gunzipSync(Buffer.concat(parts.map((part) => Buffer.from(part)))).toString();
    expect(headers).toMatchObject({ "content-encoding": "gzip" });
    expect(JSON.parse(body)).toMatchObject({ ok: true, ts: "1.0", warning: "superfluous_charset" });
    expect(JSON.parse(body)).not.toHaveProperty("channel");
  });

  test.each<Dialect>(["usual", "spare"])(
    "the official client understands the spare dialect as well as the usual one: %s",
    async (dialect) => {
      const slack = await startSlack({ dialect });
      const general = slack.channel({ name: "general" });
      const client = createWebClient(slack);
      const ts = await postMessage(client, { channel: general.id, text: "hello" });
      await client.chat.update({ channel: general.id, ts, text: "hello there" });
      expect(slack.texts(general)).toEqual(["hello there"]);
      slack.user({ name: "Ada" }).dm("hi");
      const [told] = slack.deliveries
        .map(({ payload }) => payload["event"] as Json)
        .filter((event) => event["text"] === "hi");
      expect("channel_type" in (told ?? {})).toBe(dialect === "usual");
    },
  );
});
