import { describe, expect, test } from "vitest";
import type { Workspace } from "../../../../adapters/slack/api/workspaces.ts";
import { readForwards, readShown } from "../../../../adapters/slack/people/content.ts";
import { readWords } from "../../../../adapters/slack/people/wording.ts";
import { readShapes } from "../../../support/shapes.ts";

const ACME = { teamId: "T1", botUserId: "U0", botId: "B0" } as Workspace;
const PEOPLE: Readonly<Record<string, string>> = { U1: "Ada", U2: "Ben" };
const NAMES = {
  person: async (_: unknown, id: string) => ({ name: PEOPLE[id] ?? id, isAdmin: false, isGuest: false }),
  channelName: async () => "general",
};

describe("the shown content of a message on Slack", () => {
  const shapes = readShapes("slack");

  test("is read from many apps", () => expect(shapes.length).toBeGreaterThan(30));

  test.each(shapes)("is text: $about", async ({ message, text }) => {
    expect(await readWords(readShown(message), ACME, NAMES)).toBe(text);
  });

  test("is empty for an empty or malformed message", () => {
    for (const odd of [
      {},
      { attachments: [null, "x", { fields: "x", blocks: [[]], color: 7 }], blocks: [null, { type: 7 }] },
    ]) {
      expect(readShown(odd)).toBe("");
    }
  });

  test("ends where somebody nests without end", () => {
    let block: Record<string, unknown> = { type: "section", text: { type: "mrkdwn", text: "deep" } };
    for (let depth = 0; depth < 10_000; depth++) block = { type: "container", blocks: [block] };
    expect(readShown({ blocks: [block] })).toBe("");
  });
});

describe("the forwarded messages of a message", () => {
  test("are quoted, and previews of links are not", async () => {
    const attachments = [
      { is_share: true, author_name: "Bob", text: "see <@U1>\nplease" },
      { is_msg_unfurl: false, title: "A page", text: "preview" },
    ];
    const forwards = readForwards({ attachments });
    expect(await readWords(forwards, ACME, NAMES)).toBe("Forwarded from Bob:\n> see @Ada\n> please");
    expect(readForwards({})).toBe("");
  });

  test("are cut where they are long", () => {
    const forwarded = readForwards({ attachments: [{ is_share: true, text: "x".repeat(5_000) }] });
    expect(forwarded).toHaveLength("Forwarded:\n&gt; ".length + 2_001);
  });
});
