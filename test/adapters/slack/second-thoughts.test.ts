import { describe, expect, test } from "vitest";
import { startSlack } from "../../simulators/slack/slack.ts";
import type { Message } from "../../simulators/slack/world.ts";
import { type BotOptions, startBot } from "./bot-stage.ts";

async function start(options: BotOptions) {
  const bot = await startBot(options);
  const { slack, general, idle } = bot;
  function answerTo(asked: Message): Message {
    const [message] = slack.answers(general, asked);
    if (message === undefined) throw new Error("There is no answer.");
    return message;
  }
  async function settled(): Promise<void> {
    await slack.acknowledged();
    await idle();
  }
  return { ...bot, answerTo, settled };
}

describe("second thoughts on Slack", () => {
  test("an edited question is answered once more in its message, which leads back to the answer before", async () => {
    const { slack, ada, general, finished, answerTo, settled } = await start({ scripts: [["Paris."], ["Rome."]] });
    const asked = ada.mention(general, "The capital of France?");
    await finished(general, asked);
    ada.edit(asked, `<@${slack.workspace.bot.id}> The capital of Italy?`);
    await slack.until(() => slack.texts(general, asked)[0] === "Rome.", "the second answer");
    await settled();
    await ada.press(answerTo(asked), "show");
    await settled();
    expect(slack.texts(general, asked)).toEqual([expect.stringMatching(/^Paris\.\n\n_Answer 1 of 2/)]);
    await ada.press(answerTo(asked), "show");
    await settled();
    expect(slack.texts(general, asked)).toEqual(["Rome."]);
  });

  test("Regenerate asks again, and each of three answers is reached from the one beside it", async () => {
    const { slack, ada, general, finished, answerTo, settled } = await start({ scripts: [["1."], ["2."], ["3."]] });
    const asked = ada.mention(general, "count");
    await finished(general, asked);
    for (const next of ["2.", "3."]) {
      await ada.press(answerTo(asked), "regenerate");
      await slack.until(() => slack.texts(general, asked)[0] === next, next);
      await settled();
    }
    await ada.press(answerTo(asked), "show");
    await settled();
    expect(slack.texts(general, asked)[0]).toMatch(/^2\./);
    await ada.press(answerTo(asked), "show:1");
    await settled();
    expect(slack.texts(general, asked)).toEqual(["3."]);
  });

  test("the model's input is shown only to the person who presses Explain", async () => {
    const { slack, ada, bob, general, finished, answerTo, settled } = await start({ scripts: [["Paris."]] });
    const asked = ada.mention(general, "The capital of France?");
    await finished(general, asked);
    await bob.press(answerTo(asked), "explain");
    await settled();
    expect(slack.texts(general, asked)).toEqual(["Paris."]);
    const [told, ...more] = slack.ephemerals(general);
    expect([told?.userId, told?.shown, more]).toEqual([bob.id, expect.stringContaining("capital of France?"), []]);
  });

  test("a question that was deleted offers to delete its answer", async () => {
    const { slack, ada, general, finished, answerTo, settled } = await start({ scripts: [["Paris."]] });
    const asked = ada.mention(general, "The capital of France?");
    await finished(general, asked);
    const answer = answerTo(asked);
    ada.delete(asked);
    await slack.until(() => answer.content.blocks.some((block) => JSON.stringify(block).includes("was deleted")));
    await settled();
    await ada.press(answer, "delete");
    await settled();
    expect(slack.texts(general, asked)).toEqual([]);
  });

  test("a question that has to wait carries a sign until its turn comes", async () => {
    const end = Promise.withResolvers<void>();
    const { slack, ada, bob, general, finished } = await start({
      scripts: [["One,", end.promise, " two."], ["Three."]],
    });
    const asked = ada.mention(general, "count");
    await slack.until(() => slack.texts(general, asked).length > 0, "the first words");
    const second = bob.mention(general, "go on", { thread: asked });
    await slack.until(() => second.reactions.has("hourglass_flowing_sand"), "the sign");
    end.resolve();
    expect(await finished(general, asked, 2)).toEqual(["One, two.", "Three."]);
    await slack.until(() => (second.reactions.get("hourglass_flowing_sand")?.size ?? 0) === 0, "no sign");
  });

  test("an app without the scope for signs is not asked for them again", async () => {
    const slack = await startSlack();
    slack.workspace.scopes.delete("reactions:write");
    const ends = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const bot = await start({ slack, scripts: [["One,", ends[0]?.promise ?? Promise.resolve(), " two."], ["Three."]] });
    const { ada, bob, general, finished } = bot;
    const asked = ada.mention(general, "count");
    await slack.until(() => slack.texts(general, asked).length > 0, "the first words");
    bob.mention(general, "go on", { thread: asked });
    await slack.until(() => slack.requests.some(({ method }) => method === "reactions.add"), "the call");
    ends[0]?.resolve();
    expect(await finished(general, asked, 2)).toEqual(["One, two.", "Three."]);
    expect(slack.requests.filter(({ method }) => method.startsWith("reactions."))).toHaveLength(1);
  });
});
