import { describe, expect, test } from "vitest";
import { callApi, errorOf } from "../../../../lab/slack-sim/web-api.ts";
import type { Channel, Json } from "../../../../lab/slack-sim/world.ts";
import { startSlack } from "../../../support/slack.ts";

const METHOD = "assistant.search.context";

const byName = (one: string, other: string) => (one < other ? -1 : 1);

async function start() {
  const slack = await startSlack({ limits: { perMinute: { [METHOD]: 12 } } });
  const [ada, bob] = [slack.user({ name: "Ada" }), slack.user({ name: "Bob" })];
  const general = slack.channel({ name: "general", members: [ada, bob] });
  const open = slack.channel({ name: "open", members: [bob] });
  const hers = slack.channel({ name: "hers", kind: "private", members: [ada] });
  for (const channel of [general, open, hers]) bob.say(channel, `boat in ${channel.name}`);
  /** The token of the newest event. */
  const token = () => (slack.deliveries.at(-1)?.payload["event"] as Json | undefined)?.["action_token"];
  const search = async (args: Json = {}) => {
    const { body } = await callApi(slack, METHOD, { query: "boat", action_token: token(), ...args });
    return ((body["results"] as Json)["messages"] as Json[]).map(({ channel_name: name }) => String(name)).sort(byName);
  };
  const refused = (args: Json) => errorOf(slack, METHOD, { query: "boat", action_token: token(), ...args });
  return { slack, ada, bob, general, open, hers, token, search, refused };
}

describe("the simulated assistant.search.context", () => {
  test("a search finds the messages that Slack documents for the channel of the question", async () => {
    const { slack, ada, general, hers, search } = await start();
    const ask = async (channel: Channel) => {
      ada.mention(channel, "look");
      return search();
    };
    expect(await ask(general)).toEqual(["general", "open"]);
    expect(await ask(hers)).toEqual(["general", "hers", "open"]);
    ada.dm("look");
    expect(await search()).toEqual(["general", "open"]);
    const partners = slack.channel({ name: "partners", members: [ada], isShared: true });
    ada.say(partners, `<@${slack.workspace.bot.id}> boat`);
    expect(await search()).toEqual(["partners"]);
  });

  test("only messages to the app have a token for searching", async () => {
    const { ada, general, token } = await start();
    ada.say(general, "hello");
    expect(token()).toBeUndefined();
    ada.mention(general, "hello");
    expect(token()).toEqual(expect.any(String));
    ada.dm("hello");
    expect(token()).toEqual(expect.any(String));
  });

  test("the simulator refuses a search that Slack does not allow", async () => {
    const { slack, ada, refused } = await start();
    ada.dm("look");
    expect(await refused({ query: "" })).toBe("missing_query");
    expect(await refused({ query: "x".repeat(1_001) })).toBe("query_too_long");
    expect(await refused({ action_token: "1.2.3" })).toBe("invalid_action_token");
    expect(await refused({ channel_types: "public_channel,im" })).toBe("missing_scope");
    expect(await refused({ channel_types: '["public_channel"]' })).toBe("invalid_arguments");
    expect(await refused({ content_types: "files" })).toBe("missing_scope");
    expect(await refused({ limit: 21 })).toBe("invalid_arguments");
    expect(await refused({ cursor: "x" })).toBe("invalid_cursor");
    ada.user.isGuest = true;
    expect(await refused({})).toBe("access_denied");
    ada.user.isGuest = false;
    slack.advance(600_001);
    expect(await refused({})).toBe("invalid_action_token");
    slack.workspace.scopes.delete("search:read.public");
    expect(await refused({})).toBe("missing_scope");
  });
});
