import type { APIGuildMember } from "discord.js";
import { expect, test } from "vitest";
import { ApiError } from "../../../../adapters/discord/api/error.ts";
import { createDirectRoles, createFindMember, createReadMember } from "../../../../adapters/discord/hear/people.ts";

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

test("for five minutes, the bot caches those roles of a direct message's author that the policy names", async () => {
  const { rolesOf, asked, wait } = start((guildId) => (guildId === "guild of staff" ? ["staff", "others"] : []));
  expect(await rolesOf("ada")).toEqual(["staff"]);
  wait(4 * MINUTE_MS);
  expect(await rolesOf("ada")).toEqual(["staff"]);
  expect(asked).toEqual(["guild of staff", "guild of guests"]);
  wait(2 * MINUTE_MS);
  await rolesOf("ada");
  expect(asked).toHaveLength(4);
});

test("the bot looks roles up again after a minute if Discord did not return them", async () => {
  let isOut = true;
  const { rolesOf, wait } = start(() => (isOut ? undefined : ["staff"]));
  expect(await rolesOf("ada")).toEqual([]);
  isOut = false;
  wait(MINUTE_MS + 1);
  expect(await rolesOf("ada")).toEqual(["staff"]);
});

function startReads() {
  const { signal } = new AbortController();
  const asked: string[] = [];
  const answers: PromiseWithResolvers<void>[] = [];
  const readMember = createReadMember({
    async call({ route }) {
      asked.push(route);
      const answer = Promise.withResolvers<void>();
      answers.push(answer);
      await answer.promise;
      return { data: { roles: ["staff"] } };
    },
  });
  return { readMember, asked, answers, signal };
}

const ADA = "/guilds/1/members/ada";

test("the bot reads the members of one server one after the other, and waits as long as Discord asks", async () => {
  const { readMember, asked, answers, signal } = startReads();
  const both = Promise.all([readMember("1", "ada", signal), readMember("1", "ben", signal)]);
  await expect.poll(() => asked).toEqual([ADA]);
  answers[0]?.reject(new ApiError("wait", { status: 429, code: 0, retryAfterMs: 1 }));
  await expect.poll(() => asked).toEqual([ADA, ADA]);
  answers[1]?.resolve();
  await expect.poll(() => asked).toEqual([ADA, ADA, "/guilds/1/members/ben"]);
  answers[2]?.resolve();
  expect(await both).toEqual([{ roles: ["staff"] }, { roles: ["staff"] }]);
});

test("several messages by one person that are read together need one look-up of the member", async () => {
  const { readMember, asked, answers, signal } = startReads();
  const findMember = createFindMember(readMember, { closing: signal, now: () => 0 });
  const found = Promise.all([findMember("1", "ada"), findMember("1", "ada")]);
  await expect.poll(() => asked).toEqual([ADA]);
  answers[0]?.resolve();
  expect(await found).toEqual([{ roles: ["staff"] }, { roles: ["staff"] }]);
  await findMember("1", "ada");
  expect(asked).toEqual([ADA]);
});
