import { expect, test } from "vitest";
import type { ChatRequest } from "../../../src/gateway/chunks.ts";
import { saidIn } from "../../support/discussion.ts";
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
  expect(requests.map(({ messages }) => messages.at(-1)?.content)).toEqual([
    "Bob: Soup or salad?",
    "Bob: Tea or coffee?",
  ]);
});

test("a question from Slack's side pane brings along the channel that the person looks at", async () => {
  const { slack, general, ada, bob, requests, finished } = await startBot({ scripts: [["The disk is full."]] });
  bob.say(general, "Who is on call?");
  slack.user({ name: "Alarm", isBot: true }).say(general, "Disk full on db-1");
  ada.lookAt(general);
  await finished(ada.direct(), ada.dm("What is wrong?"));
  const said = saidIn(requests[0] as ChatRequest);
  const places = ["channel #general", "Who is on call?", "Disk full on db-1", "What is wrong?"].map((part) =>
    said.indexOf(part),
  );
  expect(places).toEqual(places.toSorted((a, b) => a - b));
  expect(places).not.toContain(-1);
});

test("a thread with the bot alone on Slack is named after the question that begins it, where the app is an agent", async () => {
  const { slack, ada, finished, idle } = await startBot({ scripts: [["At noon."]] });
  const asked = ada.dm("When is *high tide*, today, in the harbour of Le Havre, and when is it tomorrow?");
  const direct = ada.direct();
  await finished(direct, asked);
  const title = await slack.until(() => slack.assistant.title(direct, asked.ts), "the title");
  expect(title).toBe("When is high tide, today, in the harbour of Le Havre, and…");
  ada.dm("And then?", { thread: asked });
  await finished(direct, asked, 2);
  slack.failNext("assistant.threads.setTitle", { error: "not_agent_app" });
  for (const question of ["Second", "Third"]) {
    await finished(direct, ada.dm(question));
    await idle();
  }
  const titled = slack.requests.filter(({ method }) => method === "assistant.threads.setTitle");
  expect(titled.map(({ args }) => args["thread_ts"]).slice(0, 1)).toEqual([asked.ts]);
  expect(titled).toHaveLength(2);
});
