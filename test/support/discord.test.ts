import { describe, expect, test } from "vitest";
import { createRawClient } from "../../lab/discord-sim/raw-client.ts";
import { type Discord, startDiscord } from "./discord.ts";

const discords: Discord[] = [];

async function breakRule(...[options]: Parameters<typeof startDiscord>) {
  const discord = await startDiscord(options);
  discords.push(discord);
  const channel = discord.addChannel(discord.addGuild(), "general");
  await createRawClient(discord)("POST", `/channels/${channel.id}/messages`, { content: "@everyone" });
  expect(discord.violations).toHaveLength(1);
}

describe("the Discord simulator for one test", () => {
  test.fails("the simulator fails a test that breaks a rule", async () => {
    await breakRule();
  });

  test("the simulator lets a test break a rule on purpose", async () => {
    await breakRule({ allow: { ping: 1 } });
  });

  test("a test can check the violations itself", async () => {
    await breakRule({ allow: "anything" });
  });

  test("the simulator closes with its test", async () => {
    expect(discords).toHaveLength(3);
    for (const { apiUrl } of discords) await expect(fetch(apiUrl)).rejects.toThrow();
  });
});
