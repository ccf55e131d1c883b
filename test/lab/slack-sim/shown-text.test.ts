import { describe, expect, test } from "vitest";
import { shownText, smallPrint } from "../../../lab/slack-sim/shown-text.ts";
import { emptyContent } from "../../../lab/slack-sim/world.ts";

describe("the text that the Slack simulator shows", () => {
  test("the shown text is the Markdown, or else the text of the blocks, or else the text", () => {
    const blocks = [
      { type: "header", text: { type: "plain_text", text: "Title" } },
      { type: "markdown", text: "**bold**" },
      { type: "section", text: { type: "mrkdwn", text: "body" }, fields: [{ type: "mrkdwn", text: "field" }] },
      { type: "context", elements: [{ type: "mrkdwn", text: "small" }] },
      { type: "rich_text", elements: [{ type: "rich_text_section", elements: [{ type: "text", text: "rich" }] }] },
      { type: "actions", elements: [{ type: "button", text: { type: "plain_text", text: "Stop" } }] },
    ];
    expect(shownText(emptyContent({ text: "fallback", markdown: "# md", blocks }))).toBe("# md");
    expect(shownText(emptyContent({ text: "fallback", blocks }))).toBe("Title\n**bold**\nbody\nfield\nrich");
    expect(smallPrint(emptyContent({ blocks }))).toEqual(["small"]);
    expect(shownText(emptyContent({ text: "fallback", blocks: blocks.slice(-1) }))).toBe("fallback");
  });
});
