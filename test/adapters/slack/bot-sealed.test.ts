import { describe, expect, test } from "vitest";
import { type BotOptions, startBot, WAYS } from "./bot-stage.ts";

describe.each(WAYS)("the bot on a Slack that refuses edits, over %s, in its %s dialect", (transport, dialect) => {
  const start = (options: BotOptions) => startBot({ transport, simulator: { dialect }, ...options });

  test.each(["edit_window_closed", "some_error_of_tomorrow"])(
    "the bot continues the answer in a new message when Slack refuses edits with %s",
    async (word) => {
      const [shown, sealed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const { slack, ada, general, finished } = await start({
        scripts: [["One, two,", shown.promise, " three,", sealed.promise, " four."]],
      });
      slack.setStreaming("unknown_method");
      const asked = ada.mention(general, "count");
      await slack.until(() => slack.texts(general, asked)[0] === "One, two,", "the first words");
      slack.setSealed(word);
      shown.resolve();
      await slack.until(() => slack.requests.some(({ error }) => error === word), "a refusal");
      sealed.resolve();
      expect(await finished(general, asked, 2)).toEqual(["One, two,", "three, four."]);
      const [, end] = slack.answers(general, asked);
      expect(JSON.stringify(end?.content.blocks)).toContain("feedback_buttons");
    },
  );

  test("the bot marks a complete answer as ended in a new message, and continues there an answer that Slack ended", async () => {
    const [shown, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const { slack, ada, general, finished } = await start({
      scripts: [
        ["One.", shown.promise],
        ["Two,", ended.promise, " three."],
      ],
    });
    slack.setStreaming("unknown_method");
    const first = ada.mention(general, "count");
    await slack.until(() => slack.texts(general, first)[0] === "One.", "the words");
    slack.setSealed("edit_window_closed");
    shown.resolve();
    expect(await finished(general, first, 2)).toEqual(["One.", expect.stringMatching(/end of my answer/)]);
    slack.setStreaming("on");
    slack.advance(25 * 3_600_000);
    const second = ada.mention(general, "count on");
    await slack.until(() => slack.texts(general, second)[0] === "Two,", "the stream");
    slack.advance(6 * 60_000);
    ended.resolve();
    expect(await finished(general, second, 2)).toEqual(["Two,", "three."]);
  });
});
