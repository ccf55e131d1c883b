import { expect, test } from "vitest";
import { createStates, STATE_MS } from "../../../../adapters/slack/install/state.ts";

test("a state is good until it is old", () => {
  let now = 1_000_000;
  const states = createStates("secret", () => now);
  const state = states.create();
  expect(states.isGood(state)).toBe(true);
  now += STATE_MS;
  expect(states.isGood(state)).toBe(false);
});

test("no two states are the same", () => {
  const states = createStates("secret", () => 0);
  expect(states.create()).not.toBe(states.create());
});

test("a state of another secret, with more time, changed or made up is not good", () => {
  const states = createStates("secret", () => 1_000_000);
  const state = states.create();
  const [nonce, expiresAt, signature] = state.split(".");
  for (const forged of [
    createStates("other", () => 1_000_000).create(),
    `${nonce}.${Number(expiresAt) + 1}.${signature}`,
    `${nonce}.${expiresAt}.`,
    `${nonce}.${expiresAt}`,
    `${state}x`,
    state.slice(1),
    "",
    "..",
  ]) {
    expect(states.isGood(forged)).toBe(false);
  }
});
