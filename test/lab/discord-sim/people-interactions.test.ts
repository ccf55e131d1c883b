import { describe, expect, test } from "vitest";
import { startGuild } from "../../support/discord.ts";

const option = (type: number, name: string, extra: object = {}) => ({ type, name, description: name, ...extra });
const IMAGINE = {
  name: "imagine",
  description: "Draw",
  options: [
    option(3, "prompt", { required: true, max_length: 10 }),
    option(3, "ratio", { choices: [{ name: "Square", value: "1:1" }] }),
    option(11, "image", { file_types: ["image"] }),
  ],
};
const SET_ONLY = option(1, "set", { options: [option(3, "text", { required: true })] });
const ADMIN_ONLY = { name: "model", description: "Model", default_member_permissions: "16", options: [] };

async function startCommands() {
  const scene = await startGuild();
  const commands = [
    IMAGINE,
    ADMIN_ONLY,
    { name: "persona", description: "Persona", options: [SET_ONLY], contexts: [0] },
  ];
  await scene.call("PUT", `/applications/${scene.discord.bot.id}/commands`, commands);
  return scene;
}

describe("a command from a user in the simulator", () => {
  test("a command carries its options, with file links that expire and cannot be renewed", async () => {
    const { discord, channel, ada, call } = await startCommands();
    const image = { name: "cat.png", bytes: Buffer.from("png") };
    const { payload } = discord.people.command(channel, ada, "imagine", { prompt: "a cat", ratio: "1:1", image });
    const { options, resolved } = payload["data"] as {
      options: { value: string }[];
      resolved: { attachments: Record<string, { url: string; ephemeral: boolean }> };
    };
    expect(options.slice(0, 2)).toEqual([
      { name: "prompt", type: 3, value: "a cat" },
      { name: "ratio", type: 3, value: "1:1" },
    ]);
    const attachment = resolved.attachments[options[2]?.value ?? ""];
    expect(attachment?.url).toContain("/ephemeral-attachments/");
    expect((await fetch(attachment?.url ?? "")).status).toBe(200);
    discord.clock.advance(60_000);
    const links = { attachment_urls: [attachment?.url] };
    const { body } = await call("POST", "/attachments/refresh-urls", links);
    expect(body["refreshed_urls"]).toEqual([{ original: attachment?.url, refreshed: attachment?.url }]);
    discord.clock.advance(86_400_001);
    expect((await fetch(attachment?.url ?? "")).status).toBe(404);
  });

  test("a simulated user cannot send a command that Discord's clients would not allow", async () => {
    const { discord, channel, ada } = await startCommands();
    const imagine = (options: object) => () => discord.people.command(channel, ada, "imagine", { ...options });
    expect(imagine({})).toThrow('cannot be sent without "prompt"');
    expect(imagine({ prompt: "x".repeat(11) })).toThrow("too long");
    expect(imagine({ prompt: "x", ratio: "2:1" })).toThrow("not one of the choices");
    expect(imagine({ prompt: "x", image: { name: "a.txt", bytes: Buffer.from("a") } })).toThrow("none of image");
    expect(imagine({ prompt: "x", size: "1" })).toThrow('no option "size"');
    expect(() => discord.people.command(channel, ada, "other")).toThrow("no command /other");
  });

  test("a command can have sub-commands", async () => {
    const { discord, channel, ada } = await startCommands();
    const { payload } = discord.people.command(channel, ada, "persona set", { text: "kind" });
    expect(payload["data"]).toMatchObject({
      name: "persona",
      options: [{ name: "set", type: 1, options: [{ name: "text", value: "kind" }] }],
    });
  });

  test("the simulator offers a command to users with the permission, in the contexts it allows", async () => {
    const { discord, guild, channel, ada } = await startCommands();
    expect(() => discord.people.command(channel, ada, "model")).toThrow("not offered to ada");
    discord.giveRole(guild, ada, discord.addRole(guild, "keepers", ["ManageChannels"]));
    expect(discord.people.command(channel, ada, "model").kind).toBe("command");
    expect(() => discord.people.command(discord.openDm(ada), ada, "persona set", { text: "x" })).toThrow(
      "offered here",
    );
  });
});
