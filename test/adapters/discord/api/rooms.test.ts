import { Client, type ClientUser } from "discord.js";
import { expect, test } from "vitest";
import { createRooms } from "../../../../adapters/discord/api/rooms.ts";

const [GUILD, CHANNEL, BOT] = ["100000000000000001", "100000000000000002", "100000000000000003"];

/** The library's own way in for what the gateway says. */
function add(manager: object, data: object): unknown {
  return (Reflect.get(manager, "_add") as (data: object) => unknown).call(manager, data);
}

function roomsOf(guild: object) {
  const client = new Client({ intents: [] });
  client.user = add(client.users, { id: BOT, username: "palaver" }) as ClientUser;
  const channels = [{ id: CHANNEL, type: 0, name: "general", last_message_id: "1" }];
  const members = [{ user: { id: BOT }, roles: [] }];
  add(client.guilds, { id: GUILD, shardId: 0, name: "Guild", channels, members, ...guild });
  return createRooms(client);
}

test.each([
  ["no roles", {}],
  ["roles without their permissions", { roles: [{ id: GUILD, name: "@everyone" }] }],
])("a server that tells %s is written to and read, and nobody manages it", (_, guild) => {
  const rooms = roomsOf(guild);
  expect(rooms.mayWrite(CHANNEL)).toBe(true);
  expect(rooms.mayReadHistory(CHANNEL)).toBe(true);
  expect(rooms.mayManage(CHANNEL, "1", [])).toBe(false);
  expect(rooms.mayOpenThread(CHANNEL)).toBe(false);
  expect(rooms.recent(0)).toMatchObject([{ channelId: CHANNEL }]);
});

test("a server in which the bot is timed out is read and not written to, unless it is an administrator", () => {
  const timedOut = (permissions: string, until: string) =>
    roomsOf({
      roles: [{ id: GUILD, name: "@everyone", permissions }],
      members: [{ user: { id: BOT }, roles: [], communication_disabled_until: until }],
    });
  const [everything, administrator, future] = [String(2n ** 40n - 1n - 8n), "8", "2100-01-01T00:00:00Z"];
  expect(timedOut(everything, future).mayWrite(CHANNEL)).toBe(false);
  expect(timedOut(everything, future).mayReadHistory(CHANNEL)).toBe(true);
  expect(timedOut(everything, "2020-01-01T00:00:00Z").mayWrite(CHANNEL)).toBe(true);
  expect(timedOut(administrator, future).mayWrite(CHANNEL)).toBe(true);
});

test("a server that tells its roles is written to where they permit it", () => {
  const roles = (permissions: string) => ({ roles: [{ id: GUILD, name: "@everyone", permissions }] });
  expect(roomsOf(roles("8")).mayWrite(CHANNEL)).toBe(true);
  expect(roomsOf(roles("0")).mayWrite(CHANNEL)).toBe(false);
  expect(roomsOf(roles("0")).recent(0)).toEqual([]);
});
