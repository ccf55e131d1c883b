import { describe, expect, test } from "vitest";
import {
  hasFeedback,
  readButtonValue,
  toButtonBlocks,
  toButtonValue,
  toMessageBody,
} from "../../../../adapters/slack/write/draft.ts";
import { MAX_LENGTH } from "../../../../adapters/slack/write/markdown.ts";
import { checkBlocks } from "../../../../lab/slack-sim/content-rules.ts";
import { BAD, finalDraft, GOOD, growing, RETRY } from "../writing.ts";

describe("a message on Slack", () => {
  test("a message shows its text as Markdown, then its buttons, and repeats the text for notifications", () => {
    expect(toMessageBody(finalDraft("**Hi** <!here>", [RETRY]))).toEqual({
      blocks: [
        { type: "markdown", text: "**Hi** <\u200B!here>" },
        {
          type: "actions",
          elements: [
            {
              type: "button",
              text: { type: "plain_text", text: "Retry" },
              action_id: "retry",
              value: "retry:turn-1",
            },
          ],
        },
      ],
      text: "**Hi** &lt;!here&gt;",
    });
  });

  test("a message uses Slack's own feedback buttons if possible, and plain ones otherwise", () => {
    const [feedback, ...rest] = toButtonBlocks([GOOD, BAD], { hasFeedbackButtons: true });
    expect([feedback, ...rest]).toEqual([
      {
        type: "context_actions",
        elements: [
          {
            type: "feedback_buttons",
            action_id: "feedback",
            positive_button: { text: { type: "plain_text", text: "Good answer" }, value: "good:turn-1" },
            negative_button: { text: { type: "plain_text", text: "Bad answer" }, value: "bad:turn-1" },
          },
        ],
      },
    ]);
    checkBlocks(feedback === undefined ? [] : [feedback]);
    expect(toButtonBlocks([GOOD, BAD])).toMatchObject([
      { type: "actions", elements: [{ action_id: "good" }, { action_id: "bad" }] },
    ]);
  });

  test("a message shows other buttons next to feedback buttons, and needs both feedback buttons to show Slack's own", () => {
    const types = (...args: Parameters<typeof toButtonBlocks>) => toButtonBlocks(...args).map(({ type }) => type);
    expect(types([RETRY, GOOD, BAD], { hasFeedbackButtons: true })).toEqual(["actions", "context_actions"]);
    expect(types([GOOD], { hasFeedbackButtons: true })).toEqual(["actions"]);
    expect([[GOOD, BAD], [GOOD], [RETRY]].map(hasFeedback)).toEqual([true, false, false]);
  });

  test("a message of the maximum length is within Slack's limits, and a longer one is rejected", () => {
    const { blocks, text } = toMessageBody(finalDraft("&".repeat(MAX_LENGTH), [RETRY]));
    checkBlocks(blocks);
    expect(text.length).toBeLessThanOrEqual(4_000);
    expect(() => toMessageBody(finalDraft("x".repeat(MAX_LENGTH + 1)))).toThrow(/limit is 9500/);
    expect(() => toMessageBody(finalDraft("漢".repeat(MAX_LENGTH / 3 + 1)))).toThrow(/limit is 9500/);
  });

  test("a message without words has text only for notifications", () => {
    const { blocks, text } = toMessageBody(finalDraft("", [RETRY]));
    expect(blocks).toHaveLength(1);
    expect(text).not.toBe("");
  });

  test("a growing message shows repaired Markdown until it is nearly full", () => {
    const [first] = toMessageBody(growing("**thr", { markdown: "**thr**" })).blocks;
    expect(first).toMatchObject({ text: "**thr**" });
    const source = `${"x".repeat(8_000)}\n\n**thr`;
    const [second] = toMessageBody(growing(source, { markdown: `${source}**` })).blocks;
    expect(second).toMatchObject({ text: "x".repeat(8_000) });
  });
});

test("a button's value contains its action and its turn, whatever the turn's id", () => {
  const press = { action: "retry" as const, turnId: "slack:T:C:1.2:0\n" };
  expect(readButtonValue(toButtonValue(press))).toEqual(press);
});

test.each([undefined, 1, "", "retry", "retry:", "explode:t", ":t"])(
  "the adapter does not take %j for one of the bot's buttons",
  (value) => {
    expect(readButtonValue(value)).toBeUndefined();
  },
);
