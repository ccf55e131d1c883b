import { expect, test } from "vitest";
import { toSparse } from "../../../lab/discord-sim/sparse.ts";

test("an event without its optional fields still names the action, the channel and the user", () => {
  const message = { id: "1", channel_id: "2", author: { id: "3" }, content: "hello", member: {}, channel_type: 0 };
  const { member: _, channel_type: __, ...bare } = message;
  expect(toSparse("MESSAGE_CREATE", message)).toEqual(bare);
  expect(toSparse("MESSAGE_DELETE", message)).toEqual(message);
  const guild = { id: "1", channels: [{ id: "2", last_message_id: null, name: "general" }], threads: [] };
  expect(toSparse("GUILD_CREATE", guild)).toEqual({ id: "1", channels: [{ id: "2", name: "general" }] });
});
