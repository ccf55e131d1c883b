import { expect, test } from "vitest";
import { once } from "../../src/concurrency/once.ts";

test("once calls the function for the first call and ignores every later call", () => {
  const told: string[] = [];
  const tell = once((reason: string) => void told.push(reason));
  tell("revoked");
  tell("closed");
  expect(told).toEqual(["revoked"]);
});
