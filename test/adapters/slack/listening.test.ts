import { expect, test } from "vitest";
import { startBot } from "./bot-stage.ts";

test("a channel that the bot listens to on Slack has everything answered that people write to nobody", async () => {
  const bot = await startBot({ scripts: [["Soup."], ["Tea."]] });
  const { slack, general, ada, bob, requests, heard, idle, finished } = bot;
  ada.say(general, "Lunch?");
  const admin = slack.user({ name: "Eve", isAdmin: true });
  general.members.add(admin.id);
  admin.mention(general, "!listen on");
  const told = await slack.until(() => slack.ephemerals(general, admin.id)[0], "the word that it listens");
  expect(told.shown).toMatch(/^From now on/);
  await idle();
  expect(requests).toEqual([]);
  const robot = slack.user({ name: "Robot", isBot: true });
  general.members.add(robot.id);
  robot.say(general, "I am a bot.");
  ada.say(general, `<@${bob.id}> what do you think?`);
  const said = bob.say(general, "Soup or salad?");
  expect(await finished(general, said)).toEqual(["Soup."]);
  bob.edit(said, "Tea or coffee?");
  await slack.until(() => slack.texts(general, said)[0] === "Tea.", "the second answer");
  await heard();
  await idle();
  expect(requests.map(({ messages }) => messages.at(-1)?.content)).toEqual(["Soup or salad?", "Tea or coffee?"]);
});
