import { expect, test } from "vitest";
import { startEngine } from "../../lab/support/engine.ts";
import { ada, ben, command, message } from "../../lab/support/events.ts";
import type { Policy } from "../../src/config/policy/policy-file.ts";

const QUOTAS = {
  person: { day: { tokens: 50_000, requests: 2 } },
  all: { month: { money: 100 } },
};
const ADMINS = { admins: ["person:ada"] };

function start(policy: Policy) {
  const bot = startEngine({ policy: () => policy });
  const say = async (name: string, text = "", author = ada) => {
    await bot.handle(command(name, text, { author }));
    return bot.texts().at(-1) ?? "";
  };
  const ask = async (author = ada) => {
    await bot.handle(message("hello", { author }));
    return bot.texts().at(-1) ?? "";
  };
  return { ...bot, say, ask };
}

test("/quota shows people their own usage, and admins that of everyone together", async () => {
  const { say, ask } = start({ quotas: QUOTAS, access: ADMINS });
  await ask(ben);
  const own = await say("quota", "", ben);
  expect(own).toMatch(/^- Your limit of 2 requests per day: 1 request used, 1 request left; it resets /m);
  expect(own).not.toContain("everyone together");
  expect(await say("quota")).toContain("The limit for everyone together of 100.00 USD per month: 0.00 USD used");
  expect(await say("quota", "person:ben")).toContain("Their limit of 2 requests per day: 1 request used");
  expect(await say("quota", "everyone", ben)).toContain("Only admins");
});

test("a refusal at a limit names the limit, the usage and the reset time; an admin can lift the limit for a day", async () => {
  const { say, ask, audit, requests } = start({ quotas: QUOTAS, access: ADMINS });
  await ask(ben);
  await ask(ben);
  const refusal = await ask(ben);
  expect(refusal).toContain("Your limit of 2 requests per day is reached");
  expect(refusal).toContain("It resets ");
  expect(requests).toHaveLength(2);
  expect(await say("quota", "lift person:ben", ben)).toContain("Only admins");
  expect(await say("quota", "lift person:ben")).toContain("lifted those limits for a day");
  expect(await audit.read(5)).toMatchObject([
    { what: "quota", after: "lifted for a day: person:ben", authorId: "ada" },
  ]);
  expect(await say("quota", "", ben)).toContain("lifted for now; 2 requests used");
});

test("a person who erases all their data keeps the same used-up limits", async () => {
  const { say, ask, requests } = start({ quotas: QUOTAS });
  await ask(ben);
  await ask(ben);
  expect(await say("forget", "me for good", ben)).toContain("I no longer know anything about you.");
  expect(await ask(ben)).toContain("is reached");
  expect(requests).toHaveLength(2);
});

test("a person at a limit gets one notice, so two bots that answer each other fall silent", async () => {
  const { handle, texts, requests } = start({ quotas: { all: { month: { requests: 2 } } } });
  const other = { id: "other-bot", name: "Other", kind: "bot" as const };
  for (let round = 0; round < 10; round++) {
    await handle(message("And you?", { author: other }));
  }
  expect(requests).toHaveLength(2);
  expect(texts()).toHaveLength(3);
  expect(texts().at(-1)).toContain("The limit for everyone together of 2 requests per month is reached");
});

test("/quota says that there are no limits", async () => {
  const { say } = start({ access: ADMINS });
  expect(await say("quota")).toBe("There are no limits here.");
  expect(await say("quota", "lift all")).toBe("There are no limits here.");
  expect(await say("quota", "what")).toContain("Write `/quota`");
});

test("/usage everyone shows admins the totals, and sends them a file", async () => {
  const { say, ask, channel } = start({ access: ADMINS, prices: { currency: "EUR", models: { "*": { output: 1 } } } });
  await ask(ben);
  expect(await say("usage", "everyone", ben)).toContain("Only admins");
  expect(await say("usage", "everyone")).toMatch(/^Everyone, this month: 1 answer, .* EUR\.$/);
  expect(await say("usage", "channel")).toMatch(/^This channel, this month: 1 answer/);
  expect(await say("usage", "workspace")).toBe("This chat doesn't belong to a workspace.");
  await say("usage", "everyone csv");
  const [head, row] = Buffer.from(channel.at(-1)?.files[0]?.bytes ?? [])
    .toString()
    .split("\r\n");
  expect(head).toBe(
    "day,platform,workspaceId,channelId,authorId,model,answers,requests,promptTokens,cachedTokens,completionTokens,estimatedTokens,pictures,unpriced,costEUR",
  );
  expect(row).toMatch(/^\d{4}-\d\d-\d\d,test,,\w+,ben,fake,1,1,/);
});
