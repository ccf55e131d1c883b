import { describe, expect, test } from "vitest";
import { recordingLog, silent } from "../../../../lab/support/log.ts";
import { PATIENCE_MS } from "../../../../lab/support/patience.ts";
import { isRedisMissing } from "../../../../lab/support/redis.ts";
import { waitAtMost } from "../../../../src/concurrency/deadlines.ts";
import { createSharedParts } from "../../../../src/store/redis-shares.ts";
import { type Discord, type DiscordOptions, startDiscord } from "../../../support/discord.ts";
import { eventually } from "../../../support/eventually.ts";
import { shareRedis } from "../../../support/shared-redis.ts";
import { createSessionStore, startAdapter } from "../stage.ts";

/** One session per shard can start at once. */
const AT_ONCE = { maxConcurrency: 16 };

describe.skipIf(isRedisMissing)("the sessions of several processes (needs redis-server)", () => {
  const shared = shareRedis();

  async function start(simulator: DiscordOptions) {
    const discord = await startDiscord(simulator);
    const guild = discord.addGuild();
    const channel = discord.addChannel(guild, "general");
    const ada = discord.addUser("ada", guild);
    const claims = new Set<string>();
    const answered: string[] = [];
    const lastSession = createSessionStore();
    /**
     * Receives events as a process does, and drops events that another process handled. `isQuick`: sessions can start
     * at once. `failures`: how often Redis fails at shutdown. `hangs`: Redis never responds at shutdown.
     */
    const open = ({ isQuick = true, log = silent, failures = 0, hangs = false } = {}) => {
      const shares = createSharedParts(shared.connection, "test:shards", Date.now, silent);
      let left = failures;
      return startAdapter(discord, {
        log,
        lastSession,
        shares: {
          ...shares,
          claim: async (claim) => {
            if (claim.isLeaving && hangs) return new Promise(() => {});
            if (claim.isLeaving && left-- > 0) throw new Error("The connection was lost.");
            return shares.claim(claim);
          },
          ...(isQuick && { takeTurn: async () => true }),
        },
        async accept(event) {
          if (claims.has(event.key)) return;
          claims.add(event.key);
          if (event.kind === "message") answered.push(event.text);
        },
      });
    };
    const say = (text: string) => discord.people.say(channel, ada, text, { mentionBot: true });
    return { discord, open, say, answered };
  }

  const countSessions = (discord: Discord) => discord.gateway.sessions.filter(({ isAttached }) => isAttached).length;

  const heardBy = (discord: Discord) => [0, 1].map((shard) => discord.gateway.heardBy(shard).join()).join(" and ");
  const ONE_PASSED = /^(?:1 and 1,2,1|1,2,1 and 1)$/;

  test("each shard has one session, in any of the processes", async () => {
    const { discord, open } = await start({ shards: 4, sessions: AT_ONCE });
    await Promise.all([open(), open(), open()]);
    const shards = () => discord.gateway.sessions.map(({ shard: [id] }) => id);
    await eventually(() => shards().toSorted((one, other) => one - other)).toEqual([0, 1, 2, 3]);
    expect([0, 1, 2, 3].flatMap(discord.gateway.heardBy)).not.toContain(0);
  });

  test("a shutdown is not delayed if Redis does not answer", async () => {
    const { open } = await start({ sessions: AT_ONCE });
    const { adapter } = await open({ hangs: true });
    expect(
      await waitAtMost(
        adapter.pause(100).then(() => "paused"),
        PATIENCE_MS,
      ),
    ).toBe("paused");
  });

  test("sessions move to a process that starts later, which connects before the other process disconnects", async () => {
    const { discord, open } = await start({ shards: 2, sessions: AT_ONCE });
    await open();
    expect(countSessions(discord)).toBe(2);
    await open();
    await eventually(() => heardBy(discord)).toMatch(ONE_PASSED);
    expect(countSessions(discord)).toBe(2);
  });

  test("sessions move from a process that shuts down, which receives events until its successor does; each event counts once", async () => {
    const { discord, open, say, answered } = await start({});
    const first = await open();
    await open();
    expect(countSessions(discord)).toBe(1);
    say("one");
    const pausing = first.adapter.pause(60_000);
    say("two");
    await discord.until(() => countSessions(discord) === 2);
    say("three");
    await pausing;
    say("four");
    await eventually(() => answered).toEqual(["one", "two", "three", "four"]);
    await first.adapter.close();
    expect(discord.gateway.heardBy(0)).toEqual([1, 2, 1]);
  });

  test("sessions move from a process that shuts down even if Redis does not answer it for a moment", async () => {
    const { discord, open } = await start({});
    const first = await open({ failures: 2 });
    await open();
    await first.adapter.pause(60_000);
    await first.adapter.close();
    expect(discord.gateway.heardBy(0)).toEqual([1, 2, 1]);
  });

  test("sessions start no faster than Discord allows all processes together, even after one process died", async () => {
    const { discord, open, say, answered } = await start({ sessions: { identifyWindowMs: 5_000 } });
    const first = await open({ isQuick: false });
    await open({ isQuick: false });
    // The process dies, so it reports nothing to the others.
    await first.adapter.close();
    say("missed");
    // The dead process's session continues until it ends, next to the new one.
    await eventually(() => discord.gateway.heardBy(0)).toEqual([1, 0, 1, 2, 1]);
    await eventually(() => answered).toEqual(["missed"]);
  });

  test("sessions stay with their processes while Redis is away, and when it comes back empty", async () => {
    const { discord, open, say, answered } = await start({ shards: 2, sessions: AT_ONCE });
    await open();
    await open();
    await eventually(() => heardBy(discord)).toMatch(ONE_PASSED);
    const before = heardBy(discord);
    await shared.redis.restart();
    say("still there");
    await eventually(() => answered).toEqual(["still there"]);
    const { client, run } = shared.connection;
    await eventually(() => run(() => client.keys("test:shards*")).catch(() => [])).toHaveLength(1);
    expect(heardBy(discord)).toBe(before);
  });

  test("no session starts once Discord allows no more session starts today", async () => {
    // One session fewer can start while Discord's response is cached.
    const { discord, open } = await start({ sessions: { remaining: 1 } });
    const { log, lines } = recordingLog();
    open({ log }).catch(() => {});
    await eventually(() => lines.map(({ msg }) => msg).join()).toContain("no more sessions");
    expect(discord.gateway.heardBy(0)).toEqual([]);
  });
});
