import { PermissionFlagsBits } from "discord.js";
import { describe, expect, test } from "vitest";
import { inviteLink, PERMISSIONS } from "../../../../adapters/discord/api/permissions.ts";
import { applicationIdOf } from "../../../../adapters/discord/ids.ts";
import { recordingLog } from "../../../../lab/support/log.ts";
import { startDiscord } from "../../../support/discord.ts";
import { startAdapter } from "../stage.ts";

describe("the invitation", () => {
  test("the invitation names the bot and exactly the permissions it needs", async () => {
    const discord = await startDiscord();
    const { origin, pathname, searchParams } = new URL(inviteLink(discord.bot.id));
    expect(origin + pathname).toBe("https://discord.com/oauth2/authorize");
    expect(searchParams.get("client_id")).toBe(discord.bot.id);
    expect(searchParams.get("scope")).toBe("bot applications.commands");
    const bits = BigInt(searchParams.get("permissions") ?? "");
    const granted = Object.entries(PermissionFlagsBits).filter(([, bit]) => (bits & bit) !== 0n);
    expect(granted.map(([name]) => name).toSorted()).toEqual(PERMISSIONS.map(({ name }) => name as string).toSorted());
  });

  test("each permission of the invitation has a reason", () => {
    for (const { why } of PERMISSIONS) expect(why).toMatch(/^to \w+/);
  });

  test("the invitation contains the application id that is in the token", async () => {
    const discord = await startDiscord();
    expect(applicationIdOf(discord.token)).toBe(discord.bot.id);
    for (const token of ["", "secret", "a.b.c", "c2VjcmV0.b.c"]) expect(applicationIdOf(token)).toBeUndefined();
  });

  test("the bot logs its invitation when it starts, without the token", async () => {
    const discord = await startDiscord();
    const { log, lines } = recordingLog();
    await startAdapter(discord, { log });
    expect(JSON.stringify(lines)).toContain(`client_id=${discord.bot.id}`);
    expect(JSON.stringify(lines)).not.toContain(discord.token);
  });
});
