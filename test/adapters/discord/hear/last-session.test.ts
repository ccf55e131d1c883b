import { describe, expect, test } from "vitest";
import { createOwnShares } from "../../../../adapters/discord/hear/sessions.ts";
import type { LastSession, LastSessionStore } from "../../../../adapters/discord/options.ts";
import { INTENTS } from "../../../../lab/discord-sim/sessions.ts";
import { identify } from "../../../support/discord-gateway.ts";
import { eventually } from "../../../support/eventually.ts";
import { createSessionStore, startAdapter, startStage } from "../stage.ts";

const HEARD = INTENTS.guilds | INTENTS.guildMessages | INTENTS.directMessages | INTENTS.messageContent;

/** A process that received the bot's messages, and stored its position. */
async function startOther() {
  const lastSession = createSessionStore();
  const { discord, channel, ada, bob } = await startStage({ listens: false });
  const { gateway, ready } = await identify(discord, { intents: HEARD });
  await lastSession.write({
    id: String(ready.d["session_id"]),
    url: String(ready.d["resume_gateway_url"]),
    sequence: ready.s ?? 0,
  });
  return { discord, channel, ada, bob, gateway, lastSession };
}

describe("a direct conversation that starts while no process listens", () => {
  test("the next process receives a direct conversation that started after the previous process shut down", async () => {
    const lastSession = createSessionStore();
    const { discord, ada, bob, channel, adapter } = await startStage({ lastSession });
    await eventually(() => lastSession.last).toBeDefined();
    await adapter.close();
    discord.people.say(discord.openDm(ada), ada, "first words");
    discord.people.say(channel, bob, "not for the bot");
    const { message } = await startAdapter(discord, { lastSession });
    expect((await message(0)).text).toBe("first words");
    // Discord has only the new session.
    await eventually(() => discord.gateway.sessions.map(({ id }) => id)).toEqual([lastSession.last?.id]);
  });

  test("the next process receives a direct conversation that started after the previous process died", async () => {
    const { discord, ada, gateway, lastSession } = await startOther();
    gateway.close(4_000);
    await discord.until(() => discord.gateway.sessions.every(({ isAttached }) => !isAttached));
    discord.people.say(discord.openDm(ada), ada, "one");
    const { message } = await startAdapter(discord, { lastSession });
    expect((await message(0)).text).toBe("one");
    await eventually(() => discord.gateway.sessions.length).toBe(1);
  });

  test("the next process misses only the new direct conversation if Discord no longer keeps the session", async () => {
    const { discord, channel, ada, gateway, lastSession } = await startOther();
    gateway.close(1_000);
    await discord.until(() => discord.gateway.sessions.length === 0);
    discord.people.say(discord.openDm(ada), ada, "lost");
    discord.people.say(channel, ada, "missed", { mentionBot: true });
    const { message, heard, events } = await startAdapter(discord, { lastSession });
    expect((await message(0)).text).toBe("missed");
    // A message in the direct conversation would make it known, and the process could still read it for missed messages.
    await heard(channel, ada);
    expect(events).toHaveLength(1);
  });
});

test("a process does not resume a session that another process still uses", async () => {
  const { discord, channel, ada, lastSession } = await startOther();
  const before = lastSession.last;
  const shares = { ...createOwnShares(), takeTurn: async () => true };
  const claim: typeof shares.claim = async (given) => ({ ...(await shares.claim(given)), inherited: [] });
  const { heard } = await startAdapter(discord, { lastSession, shares: { ...shares, claim } });
  await heard(channel, ada);
  expect(discord.gateway.heardBy(0)).toEqual([1, 2]);
  await eventually(() => lastSession.last?.id).not.toBe(before?.id);
});

test("a process stores its position in the session until another process takes over the storing", async () => {
  const lastSession = createSessionStore();
  const { discord, channel, ada, heard } = await startStage({ lastSession });
  const [session] = discord.gateway.sessions;
  await eventually(() => lastSession.last).toMatchObject({ id: session?.id });
  discord.clock.advance(5_000);
  await heard(channel, ada);
  await eventually(() => lastSession.last?.sequence).toBe(session?.lastSequence);
  const others: LastSession = { id: "another", url: "ws://127.0.0.1", sequence: 1 };
  await lastSession.write(others);
  discord.clock.advance(5_000);
  await heard(channel, ada);
  await heard(channel, ada);
  expect(lastSession.last).toEqual(others);
});

test("a process stores its first position in the session later if the store was unavailable", async () => {
  const lastSession = createSessionStore();
  let failures = 0;
  const write: LastSessionStore["write"] = async (session) => {
    if (failures++ === 0) throw new Error("The store is away.");
    await lastSession.write(session);
  };
  const { discord, channel, ada, heard } = await startStage({ lastSession: { read: async () => undefined, write } });
  await eventually(() => failures).toBe(1);
  discord.clock.advance(5_000);
  await heard(channel, ada);
  await eventually(() => lastSession.last?.id).toBe(discord.gateway.sessions[0]?.id);
});
