import { describe, expect, test } from "vitest";
import { waitAtMost } from "../../../../src/concurrency/deadlines.ts";
import { createSharedParts } from "../../../../src/store/redis-shares.ts";
import { type Discord, type DiscordOptions, startDiscord } from "../../../simulators/discord/index.ts";
import { eventually } from "../../../support/eventually.ts";
import { recordingLog, silent } from "../../../support/log.ts";
import { PATIENCE_MS } from "../../../support/patience.ts";
import { isRedisMissing } from "../../../support/redis.ts";
import { shareRedis } from "../../../support/shared-redis.ts";
import { createSessionStore, startAdapter } from "../stage.ts";

/** As many sessions may begin at once as there are shards. */
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
     * Hears as a process does: what another one has taken is not taken again. `isQuick`: sessions may begin at once.
     * `failures`: so often Redis is lost when it ends. `hangs`: Redis never answers when it ends.
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

  /** Of two shards. */
  const heardBy = (discord: Discord) => [0, 1].map((shard) => discord.gateway.heardBy(shard).join()).join(" and ");
  const ONE_PASSED = /^(?:1 and 1,2,1|1,2,1 and 1)$/;

  test("are one for each shard, wherever it is heard", async () => {
    const { discord, open } = await start({ shards: 4, sessions: AT_ONCE });
    await Promise.all([open(), open(), open()]);
    const shards = () => discord.gateway.sessions.map(({ shard: [id] }) => id);
    await eventually(() => shards().toSorted((one, other) => one - other)).toEqual([0, 1, 2, 3]);
    expect([0, 1, 2, 3].flatMap(discord.gateway.heardBy)).not.toContain(0);
  });

  test("hold up nobody's end where Redis does not answer", async () => {
    const { open } = await start({ sessions: AT_ONCE });
    const { adapter } = await open({ hangs: true });
    expect(
      await waitAtMost(
        adapter.pause(100).then(() => "paused"),
        PATIENCE_MS,
      ),
    ).toBe("paused");
  });

  test("pass to a process that comes later, which connects before the other one lets go", async () => {
    const { discord, open } = await start({ shards: 2, sessions: AT_ONCE });
    await open();
    expect(countSessions(discord)).toBe(2);
    await open();
    await eventually(() => heardBy(discord)).toMatch(ONE_PASSED);
    expect(countSessions(discord)).toBe(2);
  });

  test("pass from a process that ends, which hears until another one does; what both hear is taken once", async () => {
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

  test("pass from a process that ends also where Redis does not answer it for a moment", async () => {
    const { discord, open } = await start({});
    const first = await open({ failures: 2 });
    await open();
    await first.adapter.pause(60_000);
    await first.adapter.close();
    expect(discord.gateway.heardBy(0)).toEqual([1, 2, 1]);
  });

  test("begin no faster than Discord allows all processes together, also after one of them died", async () => {
    const { discord, open, say, answered } = await start({ sessions: { identifyWindowMs: 5_000 } });
    const first = await open({ isQuick: false });
    await open({ isQuick: false });
    // As it dies: it says nothing of it to the others.
    await first.adapter.close();
    say("missed");
    // The one that died is heard to its end beside the new one.
    await eventually(() => discord.gateway.heardBy(0)).toEqual([1, 0, 1, 2, 1]);
    await eventually(() => answered).toEqual(["missed"]);
  });

  test("stay where they are while Redis is away, and when it comes back without what it held", async () => {
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

  test("are not begun when Discord allows no more of them today", async () => {
    // One fewer than there may be begun while what Discord said of it grows old.
    const { discord, open } = await start({ sessions: { remaining: 1 } });
    const { log, lines } = recordingLog();
    open({ log }).catch(() => {});
    await eventually(() => lines.map(({ msg }) => msg).join()).toContain("no more sessions");
    expect(discord.gateway.heardBy(0)).toEqual([]);
  });
});
