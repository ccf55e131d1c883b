import { describe, expect, test } from "vitest";
import { ask, type Step, startWorld, type World } from "../support/rights-on-slack.ts";
import { catchUpAll, type Expected } from "./rights.ts";

/** Without `asks` the question is in #general, without `which` it is about all channels. */
interface Row extends Partial<Step>, Partial<Expected> {
  /** Happens after the first channel was read. */
  during?(world: World): void;
  /** Happens while the model writes the summary. */
  afterwards?(world: World): void;
}

/** The listed channels that both Ada and the bot are in; the bot never lists group messages. */
const HERS = ["both", "general", "hers"];
const without = (...names: string[]) => HERS.filter((name) => !names.includes(name));

const ROWS: Readonly<Record<string, Row>> = {
  "the channel of the question alone": { which: "here", sees: ["general"] },
  "every channel of both, and no public one that the asker is not in": { sees: HERS },
  "every channel of both, asked in a private channel": { asks: "hers", sees: HERS },
  "every channel of both, asked in the direct conversation": { asks: "direct", sees: HERS },
  "nothing of the direct conversation itself": { asks: "direct", which: "here", sees: [] },
  "a group message in which they ask": { asks: "group", which: "here", sees: ["group"] },
  "a group message in which they ask, and not when they ask for all": { asks: "group", sees: HERS },
  "no channel that they left between asking and reading": {
    meanwhile: ({ leave, ada }) => leave(ada, "hers"),
    sees: without("hers"),
  },
  "nothing of a private channel that they left after they asked there": {
    asks: "both",
    which: "here",
    meanwhile: ({ leave, ada }) => leave(ada, "both"),
    sees: [],
  },
  "no private channel that they leave while the bot reads": {
    during: ({ leave, ada }) => leave(ada, "hers", "both"),
    sees: ["general"],
  },
  "nothing at all if they leave a private channel while the model writes": {
    afterwards: ({ leave, ada }) => leave(ada, "hers"),
  },
  "a public channel that they leave while the model writes, because they can open it again": {
    which: "here",
    afterwards: ({ leave, ada }) => leave(ada, "general"),
    sees: ["general"],
  },
  "no channel that the bot is not in": {
    before: ({ channel, slack }) => void channel("hers").members.delete(slack.workspace.bot.id),
    sees: without("hers"),
  },
  "no public channel that became private while the bot read, and that they are not in": {
    before: ({ join, ada }) => join(ada, "open"),
    during({ channel, leave, ada }) {
      channel("open").kind = "private";
      leave(ada, "open");
    },
    sees: HERS,
  },
  "only channels that a guest is in": {
    asks: "open",
    who: "gus",
    before: ({ join, gus }) => join(gus, "open"),
    sees: ["open"],
  },
  "nothing of a public channel that a guest left while the bot read": {
    asks: "open",
    who: "gus",
    before: ({ join, gus }) => join(gus, "open", "general"),
    during: ({ leave, gus }) => leave(gus, "general"),
    sees: ["open"],
  },
  "nothing of a public channel that an asker left who became a guest meanwhile": {
    during({ ada, leave }) {
      ada.user.isGuest = true;
      leave(ada, "general");
    },
    sees: ["both", "hers"],
  },
  "a channel shared by Slack Connect for a member of it": {
    which: "here",
    before: ({ channel }) => void (channel("general").isShared = true),
    sees: ["general"],
  },
  "only the shared channels of a person from another organisation": {
    who: "gus",
    before({ join, gus, channel }) {
      gus.user.isGuest = false;
      gus.user.isStranger = true;
      channel("general").isShared = true;
      join(gus, "general");
    },
    sees: ["general"],
  },
  "the threads of a private channel with it, and with it none": {
    before({ bob, channel }) {
      const [root] = channel("hers").messages.values();
      if (root !== undefined) bob.say(channel("hers"), "rocket thread", { thread: root });
    },
    sees: [...HERS, "thread"],
  },
  "no thread of a private channel that they left while the bot read": {
    before({ bob, channel }) {
      const [root] = channel("hers").messages.values();
      if (root !== undefined) bob.say(channel("hers"), "rocket thread", { thread: root });
    },
    during: ({ leave, ada }) => leave(ada, "hers"),
    sees: without("hers"),
  },
  "nothing while Slack does not describe the channels": {
    meanwhile: ({ slack }) => slack.failNext("conversations.info", { error: "internal_error" }, 99),
    sees: [],
  },
  "nothing if Slack stops describing the channels while the bot reads": {
    during: ({ slack }) => slack.failNext("conversations.info", { error: "internal_error" }, 99),
    sees: [],
  },
};

describe("what a catch-up on Slack shows a person", () => {
  test.each(Object.entries(ROWS))("a catch-up shows %s", async (_title, row) => {
    const world = await startWorld();
    row.before?.(world);
    const asked = await ask(world, { asks: "general", ...row });
    row.meanwhile?.(world);
    const during = () => row.during?.(world);
    const seen = await catchUpAll(world.adapter, asked, row.which ?? "all", {
      during,
      afterwards: () => row.afterwards?.(world),
    });
    expect(seen).toEqual(row.sees?.toSorted());
  });
});
