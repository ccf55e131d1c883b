import { describe, expect, test } from "vitest";
import { ask, type Step, startWorld } from "../support/rights-on-slack.ts";
import { type Expected, searchAll, WORD } from "./rights.ts";

type Row = Step & Expected;

const PUBLIC = ["general", "open"];
const HERS = ["both", "direct", "general", "group", "hers", "open"];
const without = (...names: string[]) => HERS.filter((name) => !names.includes(name));

const ROWS: Readonly<Record<string, Row>> = {
  "a public channel shows public channels, and withholds private places of the asker": {
    asks: "general",
    sees: PUBLIC,
    withheld: 4,
  },
  "a direct conversation shows every place of the asker": { asks: "direct", sees: HERS },
  "an answer to the asker alone shows every place of theirs": { asks: "only general", sees: HERS },
  "a private channel shows itself and public channels, and no other private channel of the same people": {
    asks: "both",
    sees: ["both", ...PUBLIC],
    withheld: 3,
  },
  "a group message shows itself and public channels": {
    asks: "group",
    sees: ["general", "group", "open"],
    withheld: 3,
  },
  "a private channel of the asker alone shows no group message": {
    asks: "hers",
    sees: ["general", "hers", "open"],
    withheld: 3,
  },
  "a channel with a guest shows only itself, if the guest is in no other": {
    asks: "general",
    before: ({ join, gus }) => join(gus, "general"),
    sees: ["general"],
    withheld: 5,
  },
  "a channel with a guest shows a public channel that the guest is in": {
    asks: "general",
    before: ({ join, gus }) => join(gus, "general", "open"),
    sees: PUBLIC,
    withheld: 4,
  },
  "a channel with two guests shows no public channel that one of them is not in": {
    asks: "general",
    before({ slack, join, gus }) {
      join(gus, "general", "open");
      join(slack.user({ name: "Gia", isGuest: true }), "general");
    },
    sees: ["general"],
    withheld: 5,
  },
  "a guest who joins between question and answer counts": {
    asks: "general",
    meanwhile: ({ join, gus }) => join(gus, "general"),
    sees: ["general"],
    withheld: 5,
  },
  "a guest who leaves between question and answer no longer counts": {
    asks: "general",
    before: ({ join, gus }) => join(gus, "general"),
    meanwhile: ({ leave, gus }) => leave(gus, "general"),
    sees: PUBLIC,
    withheld: 4,
  },
  "a guest sees in a direct conversation only the channels that they are in": {
    asks: "direct",
    who: "gus",
    before: ({ join, gus }) => join(gus, "open"),
    sees: ["open"],
  },
  "a guest who asks in a channel sees only that channel": {
    asks: "general",
    who: "gus",
    before: ({ join, gus }) => join(gus, "general"),
    sees: ["general"],
  },
  "an asker who becomes a guest between question and answer sees only channels that they are in": {
    asks: "direct",
    meanwhile: ({ ada }) => void (ada.user.isGuest = true),
    sees: without("open"),
  },
  "a channel shared by Slack Connect shows only itself": {
    asks: "general",
    before: ({ channel }) => void (channel("general").isShared = true),
    sees: ["general"],
    withheld: 5,
  },
  "a channel that is shared with others between question and answer shows only itself": {
    asks: "general",
    meanwhile: ({ channel }) => void (channel("general").isShared = true),
    sees: ["general"],
    withheld: 5,
  },
  "a channel shared between workspaces of an organisation shows only itself": {
    asks: "general",
    before: ({ channel }) => void (channel("general").isOrgShared = true),
    sees: ["general"],
    withheld: 5,
  },
  "a private channel shared by Slack Connect shows only itself": {
    asks: "both",
    before: ({ channel }) => void (channel("both").isShared = true),
    sees: ["both"],
    withheld: 5,
  },
  "a public channel that is shared with others is shown in a channel of members": {
    asks: "general",
    before: ({ channel }) => void (channel("open").isShared = true),
    sees: PUBLIC,
    withheld: 4,
  },
  "an asker who was removed from a private channel meanwhile does not see it": {
    asks: "direct",
    meanwhile: ({ leave, ada }) => leave(ada, "hers"),
    sees: without("hers"),
  },
  "a private channel that the asker was removed from meanwhile is not even counted": {
    asks: "general",
    meanwhile: ({ leave, ada }) => leave(ada, "hers", "both"),
    sees: PUBLIC,
    withheld: 2,
  },
  "an asker who was removed from the private channel of the question sees nothing of it alone": {
    asks: "only both",
    meanwhile: ({ leave, ada }) => leave(ada, "both"),
    sees: without("both"),
  },
  "an asker who left a group message meanwhile does not see it": {
    asks: "direct",
    meanwhile: ({ leave, ada }) => leave(ada, "group"),
    sees: without("group"),
  },
  "an asker whose account was deactivated meanwhile sees only their direct conversation": {
    asks: "direct",
    meanwhile({ leave, ada }) {
      ada.user.isDeactivated = true;
      leave(ada, "general", "hers", "both", "group");
    },
    sees: ["direct"],
  },
  "a public channel that became private is shown only to its members": {
    asks: "direct",
    meanwhile: ({ channel }) => void (channel("open").kind = "private"),
    sees: without("open"),
  },
  "a public channel of the asker that became private is withheld in a channel": {
    asks: "general",
    meanwhile({ channel, join, ada }) {
      join(ada, "open");
      channel("open").kind = "private";
    },
    sees: ["general"],
    withheld: 5,
  },
  "a private channel that became public is shown": {
    asks: "general",
    meanwhile: ({ channel }) => void (channel("hers").kind = "public"),
    sees: ["general", "hers", "open"],
    withheld: 3,
  },
  "a private channel that the bot is not in is shown to no one": {
    asks: "direct",
    before: ({ slack, channel }) => void channel("hers").members.delete(slack.workspace.bot.id),
    sees: without("hers"),
  },
  "a reply in a thread of a private channel is withheld like the channel": {
    asks: "general",
    before({ bob, channel }) {
      const [root] = channel("hers").messages.values();
      if (root !== undefined) bob.say(channel("hers"), `${WORD} thread`, { thread: root });
    },
    sees: PUBLIC,
    withheld: 5,
  },
  "a reply in a thread of someone else's private channel is not even counted": {
    asks: "general",
    before({ bob, channel }) {
      const [root] = channel("his").messages.values();
      if (root !== undefined) bob.say(channel("his"), `${WORD} thread`, { thread: root });
    },
    sees: PUBLIC,
    withheld: 4,
  },
  "nothing from other places is shown in a channel while Slack does not list the members": {
    asks: "general",
    meanwhile: ({ slack }) => slack.failNext("users.list", { error: "internal_error" }, 9),
    sees: ["general"],
    withheld: 5,
  },
  "nothing from other places is shown while Slack does not describe the channels": {
    asks: "direct",
    meanwhile: ({ slack }) => slack.failNext("conversations.info", { error: "internal_error" }, 99),
    sees: ["direct"],
  },
};

describe("what a search on Slack shows", () => {
  test.each(Object.entries(ROWS))("%s", async (_title, row) => {
    const world = await startWorld();
    row.before?.(world);
    const asked = await ask(world, row);
    row.meanwhile?.(world);
    expect(await searchAll(world.adapter, asked)).toEqual({
      sees: [...row.sees].toSorted(),
      withheld: row.withheld ?? 0,
    });
  });

  test("a person who joined the workspace after its members were listed counts as a guest", async () => {
    const world = await startWorld();
    const row: Row = { asks: "general", sees: [] };
    expect((await searchAll(world.adapter, await ask(world, row))).sees).toEqual(PUBLIC);
    world.join(world.slack.user({ name: "New" }), "general");
    expect((await searchAll(world.adapter, await ask(world, row))).sees).toEqual(["general"]);
  });
});
