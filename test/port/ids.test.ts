import { expect, test } from "vitest";
import {
  readEditionId,
  readPictureId,
  readTurnId,
  toCallsId,
  toEditionId,
  toPictureId,
  toTurnId,
} from "../../src/port/ids.ts";

test("the adapters read an image's id back, which fits with other ids into the platforms' limits", () => {
  const id = toPictureId(toTurnId("test:event:1"), 4);
  expect(readPictureId(id)).toEqual({ turnId: toTurnId("test:event:1"), part: 4 });
  expect(id.length).toBeLessThan(24);
  expect(id).not.toContain(":");
});

test.each([toTurnId("test:event:1"), "", "a.b", "a.12", "a:1.2", "../a.1"])(
  "the adapters do not take %j for an image's id",
  (id) => {
    expect(readPictureId(id)).toBeUndefined();
  },
);

test("the adapters read an answer's id back, which differs from ids of its turn and of images", () => {
  const turnId = toTurnId("test:event:1");
  const id = toEditionId(turnId, 12);
  expect(readEditionId(id)).toEqual({ turnId, edition: 12 });
  expect(readEditionId(turnId)).toEqual({ turnId, edition: undefined });
  expect(readPictureId(id)).toBeUndefined();
});

test("a button names its turn, whether it concerns the turn, an answer or its calls", () => {
  const turnId = toTurnId("test:1");
  expect([turnId, toEditionId(turnId, 3), toCallsId(turnId, "a-digest")].map(readTurnId)).toEqual([
    turnId,
    turnId,
    turnId,
  ]);
});
