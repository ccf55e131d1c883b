import { describe, expect, test } from "vitest";
import type { Workspace } from "../../../../adapters/slack/api/workspaces.ts";
import { readForwards, readShown, readWritten } from "../../../../adapters/slack/hear/content.ts";
import { readWords } from "../../../../adapters/slack/hear/wording.ts";
import { readShapes } from "../../../support/shapes.ts";

const ACME = { teamId: "T1", botUserId: "U0", botId: "B0" } as Workspace;
const PEOPLE: Readonly<Record<string, string>> = { U1: "Ada", U2: "Ben" };
const NAMES = {
  person: async (_: unknown, id: string) => ({ name: PEOPLE[id] ?? id, isAdmin: false, isGuest: false }),
  channelName: async () => "general",
};

describe("the shown content of a message on Slack", () => {
  const shapes = readShapes("slack");

  test("readShown reads the messages of many apps", () => expect(shapes.length).toBeGreaterThan(30));

  test.each(shapes)("readShown reads a message as text: $about", async ({ message, text }) => {
    expect(await readWords(readShown(message), ACME, NAMES)).toBe(text);
  });

  test("readShown returns nothing for an empty or malformed message", () => {
    for (const odd of [
      {},
      { attachments: [null, "x", { fields: "x", blocks: [[]], color: 7 }], blocks: [null, { type: 7 }] },
    ]) {
      expect(readShown(odd)).toBe("");
    }
  });

  test("readShown stops at endlessly nested blocks", () => {
    let block: Record<string, unknown> = { type: "section", text: { type: "mrkdwn", text: "deep" } };
    for (let depth = 0; depth < 10_000; depth++) block = { type: "container", blocks: [block] };
    expect(readShown({ blocks: [block] })).toBe("");
  });
});

describe("reading a person's words and tables", () => {
  const cell = (text: string) => ({ type: "raw_text", text });
  const words = (text: string) => ({ type: "rich_text_section", elements: [{ type: "text", text }] });
  const link = { type: "link", url: "https://example.com/?a=1", text: "a|b" };
  const read = (message: Record<string, unknown>) => readWords(readWritten(message), ACME, NAMES);

  test("readWritten returns a pasted table as Markdown, whose cells contain no bar or line break", async () => {
    const rich = { type: "rich_text", elements: [{ type: "rich_text_section", elements: [link] }, words("two")] };
    const rows = [[cell("Name"), cell("a|b"), cell("")], [cell("<one>\ntwo"), rich], []];
    const pasted = { id: 1, fallback: "[no preview available]", blocks: [{ type: "table", rows }] };
    expect(await read({ text: "which is bigger?", attachments: [pasted] })).toBe(
      [
        "which is bigger?",
        "",
        "| Name | a\\|b |  |",
        "| --- | --- | --- |",
        "| <one> two | [a\\|b](https://example.com/?a=1) two |  |",
        "|  |  |  |",
      ].join("\n"),
    );
  });

  test("readWritten keeps a table block in its position between the words", async () => {
    const table = { type: "table", rows: [[cell("a")], [cell("1")]] };
    const blocks = [
      { type: "rich_text", elements: [words("Before")] },
      table,
      { type: "rich_text", elements: [words("after")] },
    ];
    expect(await read({ text: "Before after", blocks })).toBe("Before\n\n| a |\n| --- |\n| 1 |\n\nafter");
    expect(await read({ text: "", blocks: [table] })).toBe("| a |\n| --- |\n| 1 |");
    expect(await read({ text: "", blocks: [{ type: "table", rows: [[cell("")], []] }] })).toBe("");
  });

  test("readWritten leaves out previews of links, whatever they show", async () => {
    const table = { type: "table", rows: [[cell("a")]] };
    const previews = [
      { from_url: "https://example.com", blocks: [table] },
      { from_url: "https://acme.slack.com/archives/C1/p1", is_msg_unfurl: true, message_blocks: [], blocks: [table] },
      { title: "A page", text: "preview" },
    ];
    expect(await read({ text: "see <https://example.com>", attachments: previews })).toBe("see https://example.com");
  });
});

describe("reading forwarded messages", () => {
  test("readForwards includes the tables of the forwarded message", async () => {
    const rows = [[{ type: "raw_text", text: "a" }], [{ type: "raw_text", text: "1" }]];
    const message_blocks = [{ team: "T1", channel: "C1", ts: "1.0", message: { blocks: [{ type: "table", rows }] } }];
    const forwards = readForwards({ attachments: [{ is_share: true, author_name: "Bob", text: "", message_blocks }] });
    expect(await readWords(forwards, ACME, NAMES)).toBe("Forwarded from Bob:\n> | a |\n> | --- |\n> | 1 |");
  });

  test("readForwards quotes forwarded messages, and no previews of links", async () => {
    const attachments = [
      { is_share: true, author_name: "Bob", text: "see <@U1>\nplease" },
      { is_msg_unfurl: false, title: "A page", text: "preview" },
    ];
    const forwards = readForwards({ attachments });
    expect(await readWords(forwards, ACME, NAMES)).toBe("Forwarded from Bob:\n> see @Ada\n> please");
    expect(readForwards({})).toBe("");
  });

  test("readForwards truncates a long message, but not inside a flag", () => {
    const forward = (text: string) => readForwards({ attachments: [{ is_share: true, text }] });
    expect(forward("x".repeat(5_000))).toHaveLength("Forwarded:\n&gt; ".length + 2_000);
    expect(forward(`${"x".repeat(1_990)} <https://example.com|page> and`)).toMatch(/x …$/);
    expect(forward(`${"x".repeat(1_997)}&amp;&amp;`)).toMatch(/x…$/);
    expect(forward(`x${"🇩🇪".repeat(1_000)}`)).toBe(`Forwarded:\n&gt; x${"🇩🇪".repeat(499)}…`);
  });
});
