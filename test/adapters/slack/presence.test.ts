import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { DEFAULT_EVENTS } from "../../../lab/slack-sim/events.ts";
import type { ChatRequest } from "../../../src/gateway/request.ts";
import { saidIn } from "../../support/discussion.ts";
import { startBot } from "./bot-stage.ts";

test("in a Slack channel with /listen on, the bot also answers messages that mention no one", async () => {
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

test("a question in Slack's side pane includes the channel that the person looks at", async () => {
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

test("the process that answers a question knows which channel the person looks at, even if another process received the question", async () => {
  const database = new DatabaseSync(":memory:");
  const scripts = [["Hello."], ["The disk is full."]];
  const events = [...DEFAULT_EVENTS, "assistant_thread_context_changed"];
  const first = await startBot({ simulator: { events }, database, scripts });
  const { slack, general, ada, bob, finished } = first;
  bob.say(general, "Disk full on db-1");
  const root = ada.dm("hi");
  await finished(ada.direct(), root);
  ada.lookAtFrom(root, general);
  await first.heard();
  await first.adapter.pause();
  await first.queue.close(0);
  const second = await startBot({ slack, database, scripts });
  ada.dm("What is wrong?", { thread: root });
  await second.finished(ada.direct(), root, 2);
  expect(saidIn(second.requests[0] as ChatRequest)).toContain("Disk full on db-1");
});

test("a direct thread on Slack gets its title from its first question if the app is an agent", async () => {
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
