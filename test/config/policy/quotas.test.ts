import { expect, test } from "vitest";
import { readPolicyFile } from "../../../src/config/policy/policy-file.ts";

const read = (text: string) => readPolicyFile("policy.yaml", () => text);

test("the policy keeps quotas and prices as written", () => {
  const { policy, problems } = read(`
quotas:
  person: { day: { tokens: 100000, pictures: 10 } }
  all: { minute: { requests: 120 }, month: { money: 250.5 } }
  answerTokens: 2000
prices:
  currency: EUR
  models:
    gpt-large: { input: 2.5, cachedInput: 1.25, output: 10 }
    painter: { picture: 0.04 }
`);
  expect(problems).toEqual([]);
  expect(policy.quotas?.person).toEqual({ day: { tokens: 100_000, pictures: 10 } });
  expect(policy.prices?.models["gpt-large"]?.cachedInput).toBe(1.25);
});

test("the policy reports every mistake in quotas and prices in one sentence", () => {
  const { problems } = read(`
quotas:
  person: { day: {}, week: { tokens: 1 } }
  channel: { hour: { tokens: 1.5, pictures: -1 } }
  workspace: 7
  all: { month: { money: much } }
  answerTokens: 1
prices:
  currency: euro
  models:
    a: { input: -1 }
    b: {}
    c: { input: 1, prompt: 1 }
    d: 2
`);
  expect(problems.toSorted()).toEqual([
    "prices.currency must be the three letters of a currency, such as USD",
    "prices.models.a.input must not be less than 0",
    "prices.models.b must name at least one price",
    "prices.models.c.prompt is not known",
    "prices.models.d must be an object of prices, such as { input: 2.5, output: 10 }",
    "quotas.all.month.money must be a number",
    "quotas.answerTokens must not be less than 16",
    "quotas.channel.hour.pictures must not be less than 0",
    "quotas.channel.hour.tokens must be a whole number",
    "quotas.person.day must name at least one of tokens, requests, pictures, money",
    "quotas.person.week is not known",
    "quotas.workspace must be an object with some of minute, hour, day, month",
  ]);
});
