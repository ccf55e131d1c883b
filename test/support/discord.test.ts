import { describe, expect, test } from "vitest";
import { type Discord, startDiscord } from "./index.ts";
import { createRawClient } from "./raw-client.ts";

const discords: Discord[] = [];

async function breakRule(...[options]: Parameters<typeof startDiscord>) {
  const discord = await startDiscord(options);
  discords.push(discord);
  const channel = discord.addChannel(discord.addGuild(), "general");
  await createRawClient(discord)("POST", `/channels/${channel.id}/messages`, { content: "@everyone" });
  expect(discord.violations).toHaveLength(1);
}

describe("a simulator for one test", () => {
  test.fails("fails the test that breaks a rule", async () => {
    await breakRule();
  });

  test("lets a test break a rule on purpose", async () => {
    await breakRule({ allow: { ping: 1 } });
  });

  test("leaves the judgement to a test that asks for it", async () => {
    await breakRule({ allow: "anything" });
  });

  test("is closed with its test", async () => {
    expect(discords).toHaveLength(3);
    for (const { apiUrl } of discords) await expect(fetch(apiUrl)).rejects.toThrow();
  });
});
