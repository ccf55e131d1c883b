import { describe, expect, test } from "vitest";
import { createTellPerson } from "../../../../adapters/slack/write/notice.ts";
import { startInteractions } from "../interaction-stage.ts";

const EPHEMERAL = "chat.postEphemeral";

async function start() {
  const stage = await startInteractions();
  const { slack, ada, general, workspace, api } = stage;
  await ada.command("/help", "", general);
  const responseUrl = stage.events[0]?.reply.extra?.["responseUrl"];
  const by = { workspace, person: { id: ada.id }, channelId: general.id };
  return {
    ...stage,
    by: { ...by, responseUrl },
    tellPerson: createTellPerson({ api, apiUrl: slack.apiUrl }),
    told: () => slack.ephemerals(general, ada.id).map(({ shown }) => shown),
    posts: () => slack.requests.filter(({ method }) => method === EPHEMERAL).length,
  };
}

describe("an ephemeral answer to an interaction", () => {
  test("an ephemeral answer to an interaction is visible only to the person who acted", async () => {
    const { slack, bob, general, by, tellPerson, told, posts } = await start();
    await tellPerson(by, "psst");
    expect(told()).toEqual(["psst"]);
    expect(slack.ephemerals(general, bob.id)).toEqual([]);
    expect(posts()).toBe(0);
  });

  test("an ephemeral answer is posted if the response URL accepts no more answers", async () => {
    const { by, tellPerson, told, posts } = await start();
    for (let uses = 0; uses < 6; uses++) await tellPerson(by, `psst ${uses}`);
    expect(told()).toHaveLength(6);
    expect(posts()).toBe(1);
  });

  test.each(["https://hooks.slack.com.example/x", "http://hooks.slack.com/x", "http://169.254.169.254/", undefined])(
    "an ephemeral answer is posted instead of being sent to an address that is not Slack's: %s",
    async (responseUrl) => {
      const { by, tellPerson, told, posts } = await start();
      await tellPerson({ ...by, responseUrl }, "psst");
      expect(told()).toEqual(["psst"]);
      expect(posts()).toBe(1);
    },
  );

  test("the adapter reports an ephemeral answer that it cannot post either, without showing the address", async () => {
    const { slack, by, tellPerson } = await start();
    slack.advance(31 * 60_000);
    slack.failNext(EPHEMERAL, { error: "user_not_in_channel" });
    const failure = await tellPerson(by, "psst").catch(String);
    expect(failure).toMatch(/user_not_in_channel/);
    expect(failure).not.toContain("response/");
  });
});
