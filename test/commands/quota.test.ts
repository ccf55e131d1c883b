import { expect, test } from "vitest";
import type { Policy } from "../../src/config/policy/policy-file.ts";
import { startEngine } from "../support/engine.ts";
import { ada, ben, command, message } from "../support/events.ts";

const QUOTAS = {
  person: { day: { tokens: 50_000, requests: 2 } },
  all: { month: { money: 100 } },
};
const ADMINS = { admins: ["person:ada"] };

function start(policy: Policy) {
  const bot = startEngine({ policy: () => policy });
  const say = async (name: string, text = "", author = ada) => {
    await bot.accept(command(name, text, { author }));
    await bot.idle();
    return bot.texts().at(-1) ?? "";
  };
  const ask = async (author = ada) => {
    await bot.accept(message("hello", { author }));
    await bot.idle();
    return bot.texts().at(-1) ?? "";
  };
  return { ...bot, say, ask };
}

test("/quota tells people their own, and admins what all together have used", async () => {
  const { say, ask } = start({ quotas: QUOTAS, access: ADMINS });
  await ask(ben);
  const own = await say("quota", "", ben);
  expect(own).toMatch(/^- Your limit of 2 requests per day: 1 request used, 1 request left; it begins anew /m);
  expect(own).not.toContain("everybody together");
  expect(await say("quota")).toContain("My limit for everybody together of 100.00 USD per month: 0.00 USD used");
  expect(await say("quota", "person:ben")).toContain("Their limit of 2 requests per day: 1 request used");
  expect(await say("quota", "everyone", ben)).toContain("Only admins");
});

test("an answer beyond a limit says which, how much and until when, and an admin lifts it for a day", async () => {
  const { say, ask, audit, requests } = start({ quotas: QUOTAS, access: ADMINS });
  await ask(ben);
  await ask(ben);
  const refusal = await ask(ben);
  expect(refusal).toContain("Not answered: Your limit of 2 requests per day is used up");
  expect(refusal).toContain("It begins anew ");
  expect(requests).toHaveLength(2);
  expect(await say("quota", "lift person:ben", ben)).toContain("Only admins");
  expect(await say("quota", "lift person:ben")).toContain("left aside for a day");
  expect(await audit.read(5)).toMatchObject([
    { what: "quota", after: "lifted for a day: person:ben", authorId: "ada" },
  ]);
  expect(await say("quota", "", ben)).toContain("left aside for now; 2 requests used");
});

test("what is used up stays used up for who has everything about them erased", async () => {
  const { say, ask, requests } = start({ quotas: QUOTAS });
  await ask(ben);
  await ask(ben);
  expect(await say("forget", "me for good", ben)).toContain("I know nothing about you any more.");
  expect(await ask(ben)).toContain("is used up");
  expect(requests).toHaveLength(2);
});

test("a person at a limit is told once, so that bots which answer each other fall silent", async () => {
  const { accept, idle, texts, requests } = start({ quotas: { all: { month: { requests: 2 } } } });
  const other = { id: "other-bot", name: "Other", kind: "bot" as const };
  for (let round = 0; round < 10; round++) {
    await accept(message("And you?", { author: other }));
    await idle();
  }
  expect(requests).toHaveLength(2);
  expect(texts()).toHaveLength(3);
  expect(texts().at(-1)).toContain("My limit for everybody together of 2 requests per month is used up");
});

test("/quota says that nothing has a limit", async () => {
  const { say } = start({ access: ADMINS });
  expect(await say("quota")).toBe("Nothing here has a limit.");
  expect(await say("quota", "lift all")).toBe("Nothing here has a limit.");
  expect(await say("quota", "what")).toContain("Write `/quota`");
});

test("/usage everyone tells admins the sums of all, and gives them a file", async () => {
  const { say, ask, channel } = start({ access: ADMINS, prices: { currency: "EUR", models: { "*": { output: 1 } } } });
  await ask(ben);
  expect(await say("usage", "everyone", ben)).toContain("Only admins");
  expect(await say("usage", "everyone")).toMatch(/^Everyone, this month: 1 answer, .* EUR\.$/);
  expect(await say("usage", "channel")).toMatch(/^This channel, this month: 1 answer/);
  expect(await say("usage", "workspace")).toBe("This place belongs to no workspace.");
  await say("usage", "everyone csv");
  const [head, row] = Buffer.from(channel.at(-1)?.files[0]?.bytes ?? [])
    .toString()
    .split("\r\n");
  expect(head).toBe(
    "day,platform,workspaceId,channelId,authorId,model,answers,requests,promptTokens,cachedTokens,completionTokens,estimatedTokens,pictures,unpriced,costEUR",
  );
  expect(row).toMatch(/^\d{4}-\d\d-\d\d,test,,\w+,ben,fake,1,1,/);
});
