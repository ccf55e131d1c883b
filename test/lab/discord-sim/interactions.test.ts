import { describe, expect, test } from "vitest";
import type { Interaction } from "../../../lab/discord-sim/interaction.ts";
import { shown } from "../../../lab/discord-sim/world.ts";
import { type DiscordOptions, startGuild } from "../../support/discord.ts";

const BUTTONS = [{ type: 1, components: [{ type: 2, style: 1, label: "Stop", custom_id: "stop:1" }] }];
const EPHEMERAL = 64;
const LOADING = 128;

async function startCommand(options: DiscordOptions = {}) {
  const { discord, channel, ada, call } = await startGuild(options);
  const open = { token: null };
  await call("PUT", `/applications/${discord.bot.id}/commands`, [{ name: "ask", description: "Ask" }]);
  const ask = () => discord.people.command(channel, ada, "ask");
  const answer = ({ id, token }: Interaction, type: number, data?: object, query = "") =>
    call("POST", `/interactions/${id}/${token}/callback${query}`, { type, data }, open);
  const hook = (method: string, { token }: Interaction, path: string, json?: object) =>
    call(method, `/webhooks/${discord.bot.id}/${token}${path}`, json, open);
  return { discord, channel, ada, call, ask, answer, hook };
}

const code = (result: { body: Record<string, unknown> }) => result.body["code"];

describe("an interaction in the simulator", () => {
  test("a bot can answer an interaction once: the second acknowledgement gets 40060", async () => {
    const { discord, channel, ask, answer } = await startCommand();
    const asked = ask();
    const told = await answer(asked, 4, { content: "Here" }, "?with_response=true");
    const [message] = discord.messages(channel);
    expect(told.body).toMatchObject({
      interaction: { id: asked.id, response_message_id: message?.id },
      resource: { type: 4, message: { content: "Here", type: 20 } },
    });
    expect(code(await answer(asked, 5))).toBe(40060);
  });

  test("an interaction expires after three seconds, and the user sees that it failed", async () => {
    const { discord, ask, answer } = await startCommand({ allow: { "late-acknowledgement": 1 } });
    const asked = ask();
    discord.clock.advance(10_000);
    expect(code(await answer(asked, 5))).toBe(10062);
    expect(asked.acknowledgedAs).toBeUndefined();
    expect(discord.violations.map(({ atMs }) => atMs)).toEqual([asked.createdAtMs + 3_000]);
  });

  test("an interaction is unknown with another interaction's token", async () => {
    const { ask, answer } = await startCommand();
    expect(code(await answer({ ...ask(), token: "x" }, 4, { content: "Here" }))).toBe(10062);
  });

  test("an interaction accepts only callbacks of its kind", async () => {
    const { ask, answer } = await startCommand();
    expect(code(await answer(ask(), 8, { choices: [] }))).toBe(50035);
    expect(code(await answer(ask(), 7, { content: "x" }))).toBe(50035);
  });

  test("a deferred interaction shows that the bot is thinking until the first follow-up replaces that notice", async () => {
    const { discord, channel, ask, answer, hook } = await startCommand();
    const asked = ask();
    expect((await answer(asked, 5)).status).toBe(204);
    const [thinking] = discord.messages(channel);
    expect(thinking?.states.map(({ flags }) => flags)).toEqual([LOADING]);
    const followed = await hook("POST", asked, "", { content: "Done" });
    expect(followed.body).toMatchObject({ id: thinking?.id, content: "Done", flags: 0, edited_timestamp: null });
    await hook("POST", asked, "", { content: "More" });
    expect(discord.messages(channel).map((message) => shown(message).content)).toEqual(["Done", "More"]);
  });

  test("a bot edits, reads and deletes the answer to an interaction only through its token", async () => {
    const { discord, channel, ask, answer, hook } = await startCommand();
    const asked = ask();
    expect(code(await hook("PATCH", asked, "/messages/@original", { content: "x" }))).toBe(10015);
    await answer(asked, 5);
    await hook("PATCH", asked, "/messages/%40original", { content: "Now" });
    expect((await hook("GET", asked, "/messages/@original")).body).toMatchObject({ content: "Now" });
    expect((await hook("DELETE", asked, "/messages/@original")).status).toBe(204);
    expect(discord.messages(channel)).toEqual([]);
    expect(code(await hook("PATCH", asked, "/messages/@original", { content: "x" }))).toBe(10008);
  });

  test("an interaction expires after fifteen minutes, but the bot can still edit its message", async () => {
    const { discord, channel, call, ask, answer, hook } = await startCommand({ allow: { "expired-interaction": 1 } });
    const asked = ask();
    await answer(asked, 4, { content: "Here" });
    discord.clock.advance(15 * 60_000 + 1);
    const late = await hook("PATCH", asked, "/messages/@original", { content: "late" });
    expect([late.status, code(late)]).toEqual([401, 50027]);
    const path = `/channels/${channel.id}/messages/${asked.original?.id}`;
    expect((await call("PATCH", path, { content: "as a bot" })).status).toBe(200);
  });

  test("a private answer to an interaction is invisible to others and to the bot's own calls", async () => {
    const { discord, channel, ada, call, ask, answer, hook } = await startCommand();
    const asked = ask();
    await answer(asked, 5, { flags: EPHEMERAL });
    await hook("PATCH", asked, "/messages/@original", { content: "psst" });
    const [message] = discord.messages(channel);
    expect([message?.ephemeralFor, message === undefined ? 0 : shown(message).flags]).toEqual([ada.id, EPHEMERAL]);
    expect(code(await call("GET", `/channels/${channel.id}/messages/${message?.id}`))).toBe(10008);
    expect((await call("GET", `/channels/${channel.id}/messages`)).body).toEqual([]);
    await hook("POST", asked, "", { content: "psst again", flags: EPHEMERAL });
    expect(discord.messages(channel).map(({ ephemeralFor }) => ephemeralFor)).toEqual([ada.id, ada.id]);
  });

  test("an interaction has its own rate-limit bucket for its edits", async () => {
    const { ask, answer, hook } = await startCommand();
    const [first, second] = [ask(), ask()];
    for (const asked of [first, second]) await answer(asked, 5);
    const left = async (asked: Interaction, content: string) => {
      const edited = await hook("PATCH", asked, "/messages/@original", { content });
      return edited.headers.get("x-ratelimit-remaining");
    };
    expect([await left(first, "a"), await left(first, "ab"), await left(second, "a")]).toEqual(["4", "3", "4"]);
  });
});

describe("a button in the simulator", () => {
  test("a user presses a button by its label, and the bot updates its message in place", async () => {
    const { discord, channel, ada, call, answer } = await startCommand();
    await call("POST", `/channels/${channel.id}/messages`, { content: "Growing", components: BUTTONS });
    const [message] = discord.messages(channel);
    if (message === undefined) throw new Error("No message.");
    const pressed = discord.people.press(message, ada, "Stop");
    expect(pressed.payload["data"]).toMatchObject({ custom_id: "stop:1", component_type: 2 });
    await answer(pressed, 7, { content: "Stopped", components: [] });
    expect(shown(message).content).toBe("Stopped");
    expect(() => discord.people.press(message, ada, "Stop")).toThrow('no button "Stop"');
  });

  test("a bot can acknowledge a button without a change, and edit its message later", async () => {
    const { discord, channel, ada, call, answer, hook } = await startCommand();
    await call("POST", `/channels/${channel.id}/messages`, { content: "Growing", components: BUTTONS });
    const [message] = discord.messages(channel);
    if (message === undefined) throw new Error("No message.");
    const pressed = discord.people.press(message, ada, "stop:1");
    await answer(pressed, 6);
    await hook("PATCH", pressed, "/messages/@original", { content: "Later" });
    expect(shown(message).content).toBe("Later");
  });
});
