import type { GatewayDispatchPayload } from "discord.js";
import { describe, expect, test } from "vitest";
import { createRooms, type Rooms } from "../../../../adapters/discord/api/rooms.ts";
import { createServers, type Servers } from "../../../../adapters/discord/api/servers.ts";

type Heard = Rooms & Pick<Servers, "see">;

const [GUILD, CHANNEL, BOT] = ["100000000000000001", "100000000000000002", "100000000000000003"];
const THREAD = "100000000000000004";

/** An event with few fields, as a server that imitates Discord can send it. */
function tell(rooms: Heard, t: string, d: object): void {
  rooms.see({ op: 0, s: 1, t, d } as unknown as GatewayDispatchPayload);
}

function roomsOf(guild: object): Heard {
  const servers = createServers();
  const rooms = { ...createRooms(servers), see: servers.see };
  const channels = [{ id: CHANNEL, type: 0, name: "general", last_message_id: "1" }];
  const members = [{ user: { id: BOT }, roles: [] }];
  tell(rooms, "READY", { user: { id: BOT }, guilds: [{ id: GUILD, unavailable: true }] });
  tell(rooms, "GUILD_CREATE", { id: GUILD, name: "Guild", channels, members, ...guild });
  return rooms;
}

test.each([
  ["no roles", {}],
  ["roles without their permissions", { roles: [{ id: GUILD, name: "@everyone" }] }],
])("on a server that sends %s, the bot reads and writes, and no one counts as a manager", (_, guild) => {
  const rooms = roomsOf(guild);
  expect(rooms.mayWrite(CHANNEL)).toBe(true);
  expect(rooms.mayReadHistory(CHANNEL)).toBe(true);
  expect(rooms.mayManage(CHANNEL, "1", [])).toBe(false);
  expect(rooms.mayOpenThread(CHANNEL)).toBe(false);
  expect(rooms.recent()).toMatchObject([{ channelId: CHANNEL }]);
});

test("a bot that is timed out on a server reads there but does not write, unless the bot is an administrator", () => {
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

describe("a Discord server that changes while the bot is connected", () => {
  const everyone = (permissions: string) => ({ id: GUILD, name: "@everyone", permissions });

  test("the adapter tracks new, renamed and deleted channels", () => {
    const rooms = roomsOf({});
    const channel = { id: THREAD, guild_id: GUILD, type: 0, name: "new", parent_id: "7" };
    tell(rooms, "CHANNEL_CREATE", channel);
    expect([rooms.nameOfChannel(THREAD), rooms.categoryOf(THREAD), rooms.guildIdOf(THREAD)]).toEqual([
      "new",
      "7",
      GUILD,
    ]);
    tell(rooms, "CHANNEL_UPDATE", { ...channel, name: "renamed", parent_id: null });
    expect([rooms.nameOfChannel(THREAD), rooms.categoryOf(THREAD)]).toEqual(["renamed", undefined]);
    tell(rooms, "CHANNEL_DELETE", channel);
    expect([rooms.nameOfChannel(THREAD), rooms.guildIdOf(THREAD)]).toEqual([undefined, undefined]);
  });

  test("the adapter tracks threads, even while they are archived", () => {
    const rooms = roomsOf({});
    const thread = { id: THREAD, guild_id: GUILD, type: 11, name: "thread", parent_id: CHANNEL };
    for (const event of ["THREAD_CREATE", "THREAD_LIST_SYNC"]) {
      tell(rooms, event, event === "THREAD_CREATE" ? thread : { guild_id: GUILD, threads: [thread] });
      expect(rooms.kindOf(THREAD, GUILD, undefined)).toBe("thread");
      expect(rooms.parentOf(THREAD)).toBe(CHANNEL);
      tell(rooms, "THREAD_UPDATE", { ...thread, thread_metadata: { archived: true } });
      expect(rooms.kindOf(THREAD, GUILD, undefined)).toBe("thread");
      tell(rooms, "THREAD_DELETE", thread);
      expect(rooms.kindOf(THREAD, GUILD, undefined)).toBe("channel");
    }
  });

  test("the adapter tracks a limited number of archived threads", () => {
    const rooms = roomsOf({});
    for (let index = 0; index <= 1_000; index++) {
      const thread_metadata = { archived: true };
      tell(rooms, "THREAD_UPDATE", { id: String(index), guild_id: GUILD, type: 11, name: "old", thread_metadata });
    }
    expect([rooms.nameOfChannel("0"), rooms.nameOfChannel("1")]).toEqual([undefined, "old"]);
  });

  test("the adapter tracks roles and the bot's permissions", () => {
    const rooms = roomsOf({ roles: [everyone("0")] });
    const role = { id: "5", name: "writers", permissions: "8", tags: { bot_id: BOT } };
    expect(rooms.mayWrite(CHANNEL)).toBe(false);
    tell(rooms, "GUILD_ROLE_CREATE", { guild_id: GUILD, role });
    expect([rooms.nameOfRole(GUILD, "5"), rooms.guildOfRole("5"), rooms.botRoleId(GUILD)]).toEqual([
      "writers",
      GUILD,
      "5",
    ]);
    tell(rooms, "GUILD_MEMBER_UPDATE", { guild_id: GUILD, user: { id: "somebody" }, roles: ["5"] });
    expect(rooms.mayWrite(CHANNEL)).toBe(false);
    tell(rooms, "GUILD_MEMBER_UPDATE", { guild_id: GUILD, user: { id: BOT }, roles: ["5"] });
    expect(rooms.mayWrite(CHANNEL)).toBe(true);
    tell(rooms, "GUILD_ROLE_UPDATE", { guild_id: GUILD, role: { ...role, permissions: "0" } });
    expect(rooms.mayWrite(CHANNEL)).toBe(false);
    tell(rooms, "GUILD_UPDATE", { id: GUILD, premium_tier: 3, roles: [everyone("8")] });
    expect(rooms.mayWrite(CHANNEL)).toBe(true);
    expect(rooms.maxFileBytesIn(CHANNEL)).toBe(100 * 2 ** 20);
    tell(rooms, "GUILD_ROLE_DELETE", { guild_id: GUILD, role_id: GUILD });
    expect(rooms.nameOfRole(GUILD, GUILD)).toBeUndefined();
  });

  test("the adapter remembers a server during an outage of Discord, and forgets it when the bot is removed", () => {
    const rooms = roomsOf({});
    tell(rooms, "GUILD_DELETE", { id: GUILD, unavailable: true });
    expect(rooms.nameOfChannel(CHANNEL)).toBe("general");
    tell(rooms, "GUILD_CREATE", { id: GUILD, name: "Guild", channels: [], members: [] });
    expect(rooms.nameOfChannel(CHANNEL)).toBeUndefined();
    const again = roomsOf({});
    tell(again, "GUILD_DELETE", { id: GUILD });
    expect(again.nameOfChannel(CHANNEL)).toBeUndefined();
    const away = roomsOf({});
    tell(away, "READY", { user: { id: BOT }, guilds: [] });
    expect(away.nameOfChannel(CHANNEL)).toBeUndefined();
  });
});
