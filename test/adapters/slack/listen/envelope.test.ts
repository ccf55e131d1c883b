import { describe, expect, test } from "vitest";
import { readEnvelope } from "../../../../adapters/slack/listen/envelope.ts";

const read = (value: unknown) => readEnvelope(JSON.stringify(value));

describe("an envelope", () => {
  test("says why a socket shall go", () => {
    expect(read({ type: "disconnect", reason: "warning" })).toMatchObject({ type: "disconnect", reason: "warning" });
  });

  test("holds an event or does not", () => {
    const holds = (payload: unknown) => !read({ type: "events_api", envelope_id: "e", payload }).isEmptyEvent;
    expect(holds({ event: { type: "message" } })).toBe(true);
    for (const payload of [undefined, null, {}, { event: null }, { event: {} }, { event: { type: 5 } }]) {
      expect(holds(payload)).toBe(false);
    }
    expect(read({ type: "slash_commands", payload: {} }).isEmptyEvent).toBe(false);
    expect(read({ type: "events_api", envelope_id: "e", payload: { type: "app_rate_limited" } })).toMatchObject({
      id: "e",
      payloadType: "app_rate_limited",
    });
  });

  test("is read from anything without failing", () => {
    for (const odd of [undefined, 5, Buffer.from("x"), "", "x", "null", "[]", "5"]) {
      expect(readEnvelope(odd)).toMatchObject({ type: undefined, isEmptyEvent: false });
    }
  });
});
