import { describe, expect, test } from "vitest";
import {
  hasFeedback,
  readButtonValue,
  readMark,
  toButtonBlocks,
  toButtonValue,
  toMessageBody,
  toMetadata,
} from "../../../../adapters/slack/write/blocks.ts";
import { MAX_LENGTH } from "../../../../adapters/slack/write/markdown.ts";
import { checkBlocks } from "../../../simulators/slack/content-rules.ts";
import { BAD, finalDraft, GOOD, growing, RETRY, STOP } from "../writing.ts";

describe("a message on Slack", () => {
  test("shows its text as Markdown, then its buttons, and says the text again for notifications", () => {
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

  test("has buttons that tell what they do", () => {
    const [block] = toButtonBlocks([STOP, RETRY]);
    const elements = block?.["elements"] as Array<{ value: string }>;
    expect(elements.map(({ value }) => readButtonValue(value))).toEqual([
      { action: "stop", turnId: "turn-1" },
      { action: "retry", turnId: "turn-1" },
    ]);
  });

  test("is judged by Slack's own buttons where those are taken, and by plain ones elsewhere", () => {
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

  test("has its other buttons beside those for judging, and no judging with one of them alone", () => {
    const types = (...args: Parameters<typeof toButtonBlocks>) => toButtonBlocks(...args).map(({ type }) => type);
    expect(types([RETRY, GOOD, BAD], { hasFeedbackButtons: true })).toEqual(["actions", "context_actions"]);
    expect(types([GOOD], { hasFeedbackButtons: true })).toEqual(["actions"]);
    expect([[GOOD, BAD], [GOOD], [RETRY]].map(hasFeedback)).toEqual([true, false, false]);
  });

  test("of the greatest length is within Slack's limits, and a longer one is refused", () => {
    const { blocks, text } = toMessageBody(finalDraft("&".repeat(MAX_LENGTH), [RETRY]));
    checkBlocks(blocks);
    expect(text.length).toBeLessThanOrEqual(4_000);
    expect(() => toMessageBody(finalDraft("x".repeat(MAX_LENGTH + 1)))).toThrow(/9500 fit/);
    expect(() => toMessageBody(finalDraft("漢".repeat(MAX_LENGTH / 3 + 1)))).toThrow(/9500 fit/);
  });

  test("without words has none but for notifications", () => {
    const { blocks, text } = toMessageBody(finalDraft("", [RETRY]));
    expect(blocks).toHaveLength(1);
    expect(text).not.toBe("");
  });

  test("that grows shows what is healed, until it is nearly full", () => {
    const [first] = toMessageBody(growing("**thr", { markdown: "**thr**" })).blocks;
    expect(first).toMatchObject({ text: "**thr**" });
    const source = `${"x".repeat(8_000)}\n\n**thr`;
    const [second] = toMessageBody(growing(source, { markdown: `${source}**` })).blocks;
    expect(second).toMatchObject({ text: "x".repeat(8_000) });
  });
});

describe("the metadata of a message", () => {
  test("says what a message was posted for", () => {
    expect(readMark({ metadata: toMetadata("mark") })).toBe("mark");
  });

  test("of another kind says nothing", () => {
    for (const metadata of [undefined, {}, { event_payload: {} }, { event_payload: { mark: 1 } }]) {
      expect(readMark({ metadata })).toBeUndefined();
    }
  });
});

test("a button's value says what it does and for which turn, whatever the turn is called", () => {
  const press = { action: "retry" as const, turnId: "slack:T:C:1.2:0\n" };
  expect(readButtonValue(toButtonValue(press))).toEqual(press);
});

test.each([undefined, 1, "", "retry", "retry:", "explode:t", ":t"])("%j is no button of ours", (value) => {
  expect(readButtonValue(value)).toBeUndefined();
});
