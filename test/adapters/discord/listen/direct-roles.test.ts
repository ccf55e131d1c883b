import type { APIGuildMember } from "discord.js";
import { expect, test } from "vitest";
import { createDirectRoles } from "../../../../adapters/discord/listen/direct-roles.ts";

const MINUTE_MS = 60_000;

function start(rolesIn: (guildId: string) => string[] | undefined) {
  let nowMs = 0;
  const asked: string[] = [];
  const rolesOf = createDirectRoles({
    namedGroups: async () => ["staff", "guests"],
    guildOfRole: (roleId) => `guild of ${roleId}`,
    async findMember(guildId) {
      asked.push(guildId);
      const roles = rolesIn(guildId);
      return roles && ({ roles } as APIGuildMember);
    },
    now: () => nowMs,
  });
  return { rolesOf, asked, wait: (ms: number) => void (nowMs += ms) };
}

test("the roles of a direct message's author are those named in the policy, and are remembered for five minutes", async () => {
  const { rolesOf, asked, wait } = start((guildId) => (guildId === "guild of staff" ? ["staff", "others"] : []));
  expect(await rolesOf("ada")).toEqual(["staff"]);
  wait(4 * MINUTE_MS);
  expect(await rolesOf("ada")).toEqual(["staff"]);
  expect(asked).toEqual(["guild of staff", "guild of guests"]);
  wait(2 * MINUTE_MS);
  await rolesOf("ada");
  expect(asked).toHaveLength(4);
});

test("roles that Discord did not tell are asked for again after a minute", async () => {
  let isOut = true;
  const { rolesOf, wait } = start(() => (isOut ? undefined : ["staff"]));
  expect(await rolesOf("ada")).toEqual([]);
  isOut = false;
  wait(MINUTE_MS + 1);
  expect(await rolesOf("ada")).toEqual(["staff"]);
});
