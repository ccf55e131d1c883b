import { describe, expect, test } from "vitest";
import { evaluateMentions, type MentionContext } from "../../../lab/discord-sim/mentions.ts";
import { startGuild } from "../../support/discord.ts";

const USER = "100000000000000001";
const ROLE = "100000000000000002";
const OTHER = "100000000000000003";
const TEXT = `@everyone <@${USER}> <@!${OTHER}> <@&${ROLE}>`;

function evaluate(text: string, context: Partial<MentionContext> = {}) {
  return evaluateMentions(text, {
    allowed: undefined,
    mayMentionRole: () => true,
    mayMentionEveryone: true,
    isUser: () => true,
    repliedUserId: undefined,
    ...context,
  });
}

describe("allowed_mentions in the simulator", () => {
  test("a post without allowed_mentions notifies every mentioned user", () => {
    expect(evaluate(TEXT, { repliedUserId: OTHER })).toEqual({
      userIds: [USER, OTHER],
      roleIds: [ROLE],
      everyone: true,
      repliedUserId: OTHER,
    });
  });

  test("allowed_mentions that parse nothing notify no one", () => {
    const nobody = { userIds: [], roleIds: [], everyone: false, repliedUserId: undefined };
    expect(evaluate(TEXT, { allowed: { parse: [] }, repliedUserId: OTHER })).toEqual(nobody);
    expect(evaluate(TEXT, { allowed: {} })).toEqual(nobody);
  });

  test("allowed_mentions notify the listed users, and the author of the replied-to message if requested", () => {
    const allowed = { parse: ["roles"], users: [OTHER], replied_user: true } as const;
    const notified = evaluate(TEXT, { allowed, repliedUserId: USER });
    expect(notified).toEqual({ userIds: [OTHER], roleIds: [ROLE], everyone: false, repliedUserId: USER });
  });

  test("allowed_mentions do not apply inside code", () => {
    expect(evaluate("`@everyone` ```\n@here\n``` ``<@1>``").everyone).toBe(false);
  });

  test("allowed_mentions do not give permissions that the author lacks", () => {
    const notified = evaluate(TEXT, { mayMentionEveryone: false, mayMentionRole: () => false });
    expect([notified.everyone, notified.roleIds]).toEqual([false, []]);
  });
});

describe("pings of a bot in the simulator", () => {
  test("the simulator records pings from the bot's text as violations, on every post and every edit", async () => {
    const { discord, channel, ada, call } = await startGuild({ allow: "anything" });
    const said = discord.people.say(channel, ada, "hello");
    const reply = { message_reference: { message_id: said.id }, allowed_mentions: { parse: [], replied_user: true } };
    const { body } = await call("POST", `/channels/${channel.id}/messages`, { content: `<@${ada.id}>`, ...reply });
    expect(discord.pings).toMatchObject([{ userIds: [], repliedUserId: ada.id, by: "post" }]);
    expect(discord.violations).toEqual([]);
    await call("PATCH", `/channels/${channel.id}/messages/${String(body["id"])}`, { content: `@here <@${ada.id}>` });
    expect(discord.pings[1]).toMatchObject({ userIds: [ada.id], everyone: true, by: "edit" });
    expect(discord.violations).toMatchObject([{ kind: "ping" }]);
    expect(discord.violations[0]?.sentence).toContain(`notifies user ${ada.id}, everyone`);
  });
});
