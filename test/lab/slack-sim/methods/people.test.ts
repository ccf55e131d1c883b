import { describe, expect, test } from "vitest";
import { callApi, createWebClient, errorOf } from "../../../../lab/slack-sim/web-api.ts";
import { startSlack } from "../../../support/slack.ts";

describe("the simulated methods about people", () => {
  test("the app looks up its own identity and scopes", async () => {
    const slack = await startSlack();
    const { bot, id } = slack.workspace;
    const { body, headers } = await callApi(slack, "auth.test");
    expect(body).toMatchObject({ team: "Acme", team_id: id, user_id: bot.id, bot_id: bot.botId });
    expect(headers.get("x-oauth-scopes")?.split(",")).toContain("chat:write");
  });

  test("the app looks up people, bots and the workspace", async () => {
    const slack = await startSlack();
    const client = createWebClient(slack);
    const ada = slack.user({ name: "Ada", isAdmin: true });
    expect((await client.users.info({ user: ada.id })).user).toMatchObject({ real_name: "Ada", is_admin: true });
    const { bot } = slack.workspace;
    expect((await client.bots.info({ bot: bot.botId ?? "" })).bot).toMatchObject({ user_id: bot.id });
    expect((await client.team.info()).team).toMatchObject({ name: "Acme" });
    expect(await errorOf(slack, "users.info", { user: "U404" })).toBe("user_not_found");
    expect(await errorOf(slack, "bots.info", { bot: "B404" })).toBe("bot_not_found");
  });

  test("a reaction can be added once and removed once", async () => {
    const slack = await startSlack();
    const ada = slack.user({ name: "Ada" });
    const message = ada.say(slack.channel({ name: "general", members: [ada] }), "hi");
    const eyes = { channel: message.channel.id, timestamp: message.ts, name: "eyes" };
    expect(await errorOf(slack, "reactions.add", eyes)).toBe("ok");
    expect(await errorOf(slack, "reactions.add", eyes)).toBe("already_reacted");
    expect([...(message.reactions.get("eyes") ?? [])]).toEqual([slack.workspace.bot.id]);
    expect(await errorOf(slack, "reactions.remove", eyes)).toBe("ok");
    expect(await errorOf(slack, "reactions.remove", eyes)).toBe("no_reaction");
  });

  test("the app can revoke its token", async () => {
    const slack = await startSlack();
    await createWebClient(slack).auth.revoke();
    expect(await errorOf(slack, "auth.test")).toBe("token_revoked");
  });
});
