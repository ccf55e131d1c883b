import { describe, expect, test } from "vitest";
import { pingsOf } from "../../../lab/slack-sim/pings.ts";
import { emptyContent, type Json } from "../../../lab/slack-sim/world.ts";

const text = (text: string) => emptyContent({ text });
const blocks = (...blocks: Json[]) => emptyContent({ blocks });

describe("pings of an app in the simulator", () => {
  test.each(["<!channel>", "<!here>", "<!everyone>", "<!here|here>", "<@U0ABC1>", "<@W1|bob>", "<!subteam^S1|@team>"])(
    "the markup %s notifies people, even inside code",
    (written) => {
      expect(pingsOf(text(`a ${written} b`))).toEqual([written]);
      expect(pingsOf(emptyContent({ markdown: `\`${written}\`` }))).toEqual([written]);
    },
  );

  test("escaped markup, a date, a channel or a link notifies no one", () => {
    const calm = "&lt;!channel&gt; <!date^1|x> <#C1|general> <https://example.org|@here> @channel <@ U1>";
    expect(pingsOf(text(calm))).toEqual([]);
  });

  test("plain words notify people if names are linked", () => {
    expect(pingsOf(text("hi @channel, me@here.org"), { linksNames: true })).toEqual(["@channel"]);
  });

  test("the simulator finds notifications in every kind of block that can contain them, and never in plain text", () => {
    const mrkdwn = (text: string) => ({ type: "mrkdwn", text });
    expect(pingsOf(blocks({ type: "section", text: mrkdwn("<!here>") }))).toEqual(["<!here>"]);
    expect(pingsOf(blocks({ type: "section", fields: [mrkdwn("<@U1>")] }))).toEqual(["<@U1>"]);
    expect(pingsOf(blocks({ type: "context", elements: [mrkdwn("<@U2>")] }))).toEqual(["<@U2>"]);
    expect(pingsOf(blocks({ type: "markdown", text: "<!channel>" }))).toEqual(["<!channel>"]);
    expect(pingsOf(blocks({ type: "section", text: { type: "plain_text", text: "<!channel>" } }))).toEqual([]);
    const elements = [
      { type: "user", user_id: "U3" },
      { type: "broadcast", range: "here" },
      { type: "usergroup", usergroup_id: "S3" },
      { type: "text", text: "<@U4>" },
    ];
    const rich = { type: "rich_text", elements: [{ type: "rich_text_section", elements }] };
    expect(pingsOf(blocks(rich))).toEqual(["<@U3>", "<!here>", "<!subteam^S3>"]);
  });
});
