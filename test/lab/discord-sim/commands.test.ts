import { describe, expect, test } from "vitest";
import type { Payload } from "../../../lab/discord-sim/world.ts";
import { startGuild } from "../../support/discord.ts";

const ASK = { name: "ask", description: "Ask something" };
const option = (name: string, extra: object = {}) => ({ type: 3, name, description: name, ...extra });

async function startApplication() {
  const { discord, guild, call } = await startGuild();
  const path = `/applications/${discord.bot.id}/commands`;
  const put = (...commands: object[]) => call("PUT", path, commands);
  return { discord, guild, call, path, put };
}

describe("the commands in the Discord simulator", () => {
  test("registering commands replaces all of them; an unchanged command keeps its id and version", async () => {
    const { discord, put } = await startApplication();
    const first = (await put(ASK, { name: "help", description: "Help" })).body as unknown as Payload[];
    const second = (await put(ASK, { name: "Use this", type: 3 })).body as unknown as Payload[];
    expect(second[0]).toMatchObject({ id: first[0]?.["id"], version: first[0]?.["version"] });
    expect(discord.commands().map(({ name }) => name)).toEqual(["ask", "Use this"]);
  });

  test("a guild's commands are registered separately from the global ones", async () => {
    const { discord, guild, call, put } = await startApplication();
    await put(ASK);
    await call("PUT", `/applications/${discord.bot.id}/guilds/${guild.id}/commands`, [ASK]);
    expect([discord.commands().length, discord.commands(guild).length]).toEqual([1, 1]);
    expect(discord.commands()[0]?.id).not.toBe(discord.commands(guild)[0]?.id);
  });

  test("an app can add, change and remove commands one by one", async () => {
    const { discord, call, path } = await startApplication();
    const { body } = await call("POST", path, ASK);
    await call("PATCH", `${path}/${String(body["id"])}`, { description: "Other" });
    expect(discord.commands()).toMatchObject([{ id: body["id"], description: "Other" }]);
    expect((await call("DELETE", `${path}/${String(body["id"])}`)).status).toBe(204);
    expect((await call("GET", path)).body).toEqual([]);
  });

  test("the simulator requires lower-case names, descriptions, and required options first", async () => {
    const { put } = await startApplication();
    const codes = async (...commands: object[]) => (await put(...commands)).body["code"];
    expect(await codes({ ...ASK, name: "Ask" })).toBe(50035);
    expect(await codes({ name: "ask" })).toBe(50035);
    expect(await codes({ ...ASK, options: [option("a"), option("b", { required: true })] })).toBe(50035);
    expect(await codes({ ...ASK, options: Array.from({ length: 26 }, (_, index) => option(`o${index}`)) })).toBe(50035);
    expect(await codes(ASK, ASK)).toBe(50035);
  });

  test("the simulator accepts at most 15 commands on messages", async () => {
    const { put } = await startApplication();
    const menus = Array.from({ length: 16 }, (_, index) => ({ name: `Menu ${index}`, type: 3 }));
    expect((await put(...menus)).body["code"]).toBe(50035);
  });

  test("the simulator lets an app create commands at most 200 times a day", async () => {
    const { discord, put } = await startApplication();
    for (let round = 0; round < 2; round++) {
      await put(...Array.from({ length: 100 }, (_, index) => ({ ...ASK, name: `c${round}-${index}` })));
    }
    discord.clock.advance(60_000);
    const refused = await put({ ...ASK, name: "one-more" });
    expect([refused.status, refused.body["code"]]).toEqual([429, 30034]);
  });
});
