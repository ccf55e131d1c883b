import { describe, expect, test } from "vitest";
import { INTENTS } from "../../../lab/discord-sim/sessions.ts";
import type { Payload } from "../../../lab/discord-sim/world.ts";
import { startGuild } from "../../support/discord.ts";
import { identify } from "../../support/discord-gateway.ts";

const MESSAGES = INTENTS.guildMessages | INTENTS.messageContent;

async function startRoom(intents = MESSAGES) {
  const scene = await startGuild();
  return { ...scene, ...(await identify(scene.discord, { intents })) };
}

describe("a forwarded message in the simulator", () => {
  const attachments = [{ name: "cat.png", bytes: new Uint8Array([1]) }];

  test("a forwarded message arrives as it was at that time, from the gateway and from a read", async () => {
    const { discord, guild, channel, ada, gateway, call } = await startRoom();
    const said = discord.people.say(channel, ada, "look", { attachments });
    const other = discord.addChannel(guild, "other");
    const forwarded = discord.people.forward(said, other, ada);
    discord.people.edit(said, "changed");
    const { d } = await gateway.next(({ t, d: data }) => t === "MESSAGE_CREATE" && data["id"] === forwarded.id);
    const { body } = await call("GET", `/channels/${other.id}/messages/${forwarded.id}`);
    for (const payload of [d, body]) {
      expect(payload).toMatchObject({
        type: 0,
        content: "",
        message_reference: { type: 1, message_id: said.id, channel_id: channel.id },
        message_snapshots: [{ message: { content: "look", attachments: [{ filename: "cat.png" }] } }],
      });
      expect(payload).not.toHaveProperty("referenced_message");
    }
  });

  test("the simulator withholds the content of a forwarded message from a bot without the intent", async () => {
    const { discord, channel, ada, gateway } = await startRoom(INTENTS.guildMessages);
    discord.people.forward(discord.people.say(channel, ada, "look"), channel, ada);
    const { d } = await gateway.next(
      ({ t, d: data }) => t === "MESSAGE_CREATE" && data["message_snapshots"] !== undefined,
    );
    expect(d["message_snapshots"]).toEqual([]);
  });
});

describe("messages that a user deletes in bulk", () => {
  test("messages deleted in bulk are in one event, and disappear", async () => {
    const { discord, guild, channel, ada, gateway } = await startRoom();
    const said = ["one", "two", "three"].map((text) => discord.people.say(channel, ada, text));
    discord.people.deleteAll(channel, said.slice(0, 2));
    const { d }: { d: Payload } = await gateway.next(({ t }) => t === "MESSAGE_DELETE_BULK");
    expect(d).toEqual({ ids: [said[0]?.id, said[1]?.id], channel_id: channel.id, guild_id: guild.id });
    expect(discord.messages(channel)).toEqual([said[2]]);
  });
});
