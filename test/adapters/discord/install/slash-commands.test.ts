import { describe, expect, test } from "vitest";
import type { Api } from "../../../../adapters/discord/api/client.ts";
import { ApiError } from "../../../../adapters/discord/api/error.ts";
import { registerCommands, toDefinitions } from "../../../../adapters/discord/install/slash-commands.ts";
import { silent } from "../../../../lab/support/log.ts";
import { startDiscord } from "../../../support/discord.ts";
import { signal, startAdapter } from "../stage.ts";

const PUT = "PUT /applications/:application/commands";
const GET = "GET /applications/:application/commands";
const HELP = { name: "help", description: "Show what I can do." };

describe("registering the commands", () => {
  test("at its start, the bot registers /ask, the given commands, and one command in the menu of a message", async () => {
    const discord = await startDiscord();
    await startAdapter(discord, { commands: [HELP, { name: "model", description: "Chooses the model." }] });
    await discord.until(() => discord.commands().length > 0);
    expect(discord.commands().map(({ name }) => name)).toEqual(["ask", "help", "model", "Ask about this"]);
  });

  test("the bot registers its commands again only if they have changed", async () => {
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

  test("the bot registers its commands on one server if configured", async () => {
    const discord = await startDiscord();
    const guild = discord.addGuild();
    await startAdapter(discord, { commands: [HELP], guildId: guild.id });
    await discord.until(() => discord.commands(guild).length > 0);
    expect(discord.commands()).toEqual([]);
  });

  test("if registering its commands fails, the bot still answers messages, and retries a little later", async () => {
    const discord = await startDiscord();
    discord.faults.failNext(PUT, { status: 502 });
    const { adapter } = await startAdapter(discord);
    await discord.until(() => discord.requests.some(({ route, status }) => route === PUT && status === 502));
    expect(adapter.isConnected()).toBe(true);
    await discord.until(() => discord.commands().length > 0);
  });

  test("the bot registers its commands even if the server cannot list the existing ones", async () => {
    const discord = await startDiscord();
    discord.faults.failNext(GET, { status: 404 });
    await startAdapter(discord, { commands: [HELP] });
    await discord.until(() => discord.commands().length > 0);
  });

  test("the bot does not retry registering commands that Discord refuses", async () => {
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

  test("every command description fits Discord's limit", () => {
    const [, long] = toDefinitions([{ name: "long", description: "数".repeat(300) }]);
    expect(long?.description).toHaveLength(100);
  });
});
