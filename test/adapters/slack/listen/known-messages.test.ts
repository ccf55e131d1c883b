import { describe, expect, test } from "vitest";
import type { Said } from "../../../../adapters/slack/listen/inbound.ts";
import { createKnownMessages } from "../../../../adapters/slack/listen/known-messages.ts";

const said = (text: string) => ({ text }) as Said;

describe("what overtook its message", () => {
  test("an edit takes the place of the message, and a deletion leaves none", () => {
    const known = createKnownMessages();
    expect(known.latest("a", said("first"))).toEqual(said("first"));
    known.setEdited("a", said("edited"));
    expect(known.latest("a", said("first"))).toEqual(said("edited"));
    known.setDeleted("a");
    expect(known.latest("a", said("first"))).toBeUndefined();
  });

  test("nothing comes back from a deletion", () => {
    const known = createKnownMessages();
    known.setDeleted("a");
    known.setEdited("a", said("edited"));
    expect(known.latest("a", said("first"))).toBeUndefined();
  });

  test("is forgotten when there is too much of it, the oldest first", () => {
    const known = createKnownMessages();
    for (let count = 0; count <= 5_000; count++) known.setDeleted(`${count}`);
    expect(known.latest("0", said("first"))).toBeDefined();
    expect(known.latest("1", said("second"))).toBeUndefined();
  });
});
