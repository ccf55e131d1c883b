import { describe, expect, test } from "vitest";
import type { Api } from "../../../../adapters/discord/api/client.ts";
import { ApiError } from "../../../../adapters/discord/api/error.ts";
import { registerCommands, toDefinitions } from "../../../../adapters/discord/interactions/commands.ts";
import { startDiscord } from "../../../simulators/discord/index.ts";
import { silent } from "../../../support/log.ts";
import { signal, startAdapter } from "../stage.ts";

const PUT = "PUT /applications/:application/commands";
const GET = "GET /applications/:application/commands";
const HELP = { name: "help", description: "Says what I can do." };

describe("the commands", () => {
  test("are registered when the bot starts: /ask, the given ones, and one in the menu of a message", async () => {
    const discord = await startDiscord();
    await startAdapter(discord, { commands: [HELP, { name: "model", description: "Chooses the model." }] });
    await discord.until(() => discord.commands().length > 0);
    expect(discord.commands().map(({ name }) => name)).toEqual(["ask", "help", "model", "Ask about this"]);
  });

  test("are registered again only when they have changed", async () => {
    const discord = await startDiscord();
    const count = (route: string) =>
      discord.requests.filter((request) => request.route === route && request.status !== undefined).length;
    await startAdapter(discord, { commands: [HELP] });
    await discord.until(() => count(PUT) === 1);
    await startAdapter(discord, { commands: [HELP] });
    await discord.until(() => count(GET) === 2);
    await startAdapter(discord, { commands: [{ ...HELP, description: "Helps." }] });
    await discord.until(() => count(PUT) === 2);
    expect(count(GET)).toBe(3);
  });

  test("of one server alone are registered there", async () => {
    const discord = await startDiscord();
    const guild = discord.addGuild();
    await startAdapter(discord, { commands: [HELP], guildId: guild.id });
    await discord.until(() => discord.commands(guild).length > 0);
    expect(discord.commands()).toEqual([]);
  });

  test("that cannot be registered do not keep the bot from answering, and are registered a little later", async () => {
    const discord = await startDiscord();
    discord.faults.failNext(PUT, { status: 502 });
    const { adapter } = await startAdapter(discord);
    await discord.until(() => discord.requests.some(({ route, status }) => route === PUT && status === 502));
    expect(adapter.isConnected()).toBe(true);
    await discord.until(() => discord.commands().length > 0);
  });

  test("are registered with a server that does not list them", async () => {
    const discord = await startDiscord();
    discord.faults.failNext(GET, { status: 404 });
    await startAdapter(discord, { commands: [HELP] });
    await discord.until(() => discord.commands().length > 0);
  });

  test("that Discord refuses are not offered again", async () => {
    const discord = await startDiscord();
    const [command] = toDefinitions([]);
    const calls: string[] = [];
    const api: Api = {
      async call({ method }) {
        calls.push(method);
        throw new ApiError("refused", { status: 400, code: 50035 });
      },
      settled: async () => {},
    };
    const to = { api, applicationId: discord.bot.id, log: silent };
    await expect(registerCommands(command === undefined ? [] : [command], to, signal)).rejects.toThrow("refused");
    expect(calls).toEqual(["GET"]);
  });

  test("have descriptions that fit", () => {
    const [, long] = toDefinitions([{ name: "long", description: "数".repeat(300) }]);
    expect(long?.description).toHaveLength(100);
  });
});
