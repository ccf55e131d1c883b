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

test("an id of a picture is read back, and fits beside others into what platforms allow", () => {
  const id = toPictureId(toTurnId("test:event:1"), 4);
  expect(readPictureId(id)).toEqual({ jobId: toTurnId("test:event:1"), part: 4 });
  expect(id.length).toBeLessThan(24);
  expect(id).not.toContain(":");
});

test.each([toTurnId("test:event:1"), "", "a.b", "a.12", "a:1.2", "../a.1"])("%j is no picture's id", (id) => {
  expect(readPictureId(id)).toBeUndefined();
});

test("an id of an answer is read back, and told from that of its turn and from a picture's", () => {
  const turnId = toTurnId("test:event:1");
  const id = toEditionId(turnId, 12);
  expect(readEditionId(id)).toEqual({ turnId, edition: 12 });
  expect(readEditionId(turnId)).toEqual({ turnId, edition: undefined });
  expect(readPictureId(id)).toBeUndefined();
});

test("a button names its turn, whether it is about that, one of its answers or its calls", () => {
  const turnId = toTurnId("test:1");
  expect([turnId, toEditionId(turnId, 3), toCallsId(turnId, "a-digest")].map(readTurnId)).toEqual([
    turnId,
    turnId,
    turnId,
  ]);
});
