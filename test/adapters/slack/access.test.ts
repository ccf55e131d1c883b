import { describe, expect, test } from "vitest";
import { access as accessSchema } from "../../../src/config/policy/access.ts";
import { startBot } from "./bot-stage.ts";

const SAYS_NO = "You can't ask me here.";

async function start(rules: object[], admins: string[] = []) {
  const access = accessSchema.parse({ admins, rules });
  return startBot({ policy: () => ({ access }), scripts: [["One."], ["Two."]] });
}

describe("a person without access on Slack", () => {
  test("a person who cannot ask the bot gets one ephemeral message that says so, and no one else sees it", async () => {
    let rules: object[] = [];
    const policy = () => ({ access: accessSchema.parse({ rules }) });
    const bot = await startBot({ policy, scripts: [["Hello."]] });
    const { slack, ada, bob, general, requests, finished, idle } = bot;
    rules = [{ deny: "chat", to: `person:${ada.id}` }];
    ada.mention(general, "hello?");
    ada.mention(general, "and now?");
    await slack.until(() => slack.ephemerals(general).length > 0, "a word to Ada");
    const thread = bob.mention(general, "hello");
    expect(await finished(general, thread)).toEqual(["Hello."]);
    await idle();
    expect(slack.ephemerals(general).map(({ userId, shown }) => [userId, shown])).toEqual([
      [ada.id, expect.stringContaining(SAYS_NO)],
    ]);
    expect(requests).toHaveLength(1);
  });

  test("a person who cannot write to the bot directly gets the refusal in the direct conversation", async () => {
    const { ada, finished } = await start([{ deny: "chat", in: "direct" }]);
    const asked = ada.dm("hello?");
    expect(await finished(ada.direct(), asked)).toEqual([expect.stringContaining(SAYS_NO)]);
  });
});

describe("a member of a user group on Slack", () => {
  test("a member of a user group can do what the group can", async () => {
    const { slack, ada, bob, general, finished } = await start([
      { allow: "everything", to: "group:S0ENG" },
      { deny: "chat" },
    ]);
    ada.user.workspace.groups.set("S0ENG", new Set([bob.id]));
    ada.mention(general, "hello?");
    await slack.until(() => slack.ephemerals(general).length > 0, "a word to Ada");
    const thread = bob.mention(general, "hello");
    expect(await finished(general, thread)).toEqual(["One."]);
  });
});

describe("/access on Slack", () => {
  test("/access on Slack lets admins deny and explain access by mention", async () => {
    const { slack, ada, bob, general, requests, idle } = await start([], ["group:S0OPS"]);
    ada.user.workspace.groups.set("S0OPS", new Set([ada.id]));
    const say = async (by: typeof ada, text: string) => {
      const before = slack.ephemerals(general).length;
      await by.command("/access", text, general);
      await slack.until(() => slack.ephemerals(general).length > before, "an answer");
      return slack.ephemerals(general).at(-1)?.shown;
    };
    expect(await say(bob, "deny chat")).toContain("Only admins can do that");
    expect(await say(ada, `deny chat to <@${bob.id}|bob> in here`)).toContain(
      `From now on: deny chat to person:${bob.id}`,
    );
    expect(await say(ada, `why <@${bob.id}|bob> chat`)).toMatch(
      /^`Bob` can't ask me here, because rule \w+ set in chat/,
    );
    bob.mention(general, "hello?");
    await slack.until(() => slack.ephemerals(general).some(({ shown }) => shown.includes(SAYS_NO)), "a word to Bob");
    await idle();
    expect(requests).toHaveLength(0);
  });
});
