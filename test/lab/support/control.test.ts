import { Events } from "discord.js";
import { expect, onTestFinished, test } from "vitest";
import { openPlayground as openDiscordPlayground } from "../../../lab/discord-sim/playground.ts";
import { openPlayground as openSlackPlayground } from "../../../lab/slack-sim/playground.ts";
import { type Controlled, type ShownMessage, serveControl } from "../../../lab/support/control.ts";
import { startBolt } from "../../support/bolt-app.ts";
import { startClient } from "../../support/discord-client.ts";

async function open(controlled: Controlled) {
  const { url, close } = await serveControl(controlled, 0);
  onTestFinished(close);
  const ask = async (method: string, path: string, body?: object): Promise<unknown> => {
    const answer = await fetch(`${url}${path}`, { method, ...(body && { body: JSON.stringify(body) }) });
    return answer.json();
  };
  return { ask, read: async (path: string) => (await ask("GET", path)) as ShownMessage[] };
}

const AGAIN = { type: "plain_text" as const, text: "Again" };
const BUTTON = { type: "button" as const, text: AGAIN, action_id: "again" };

test("Bolt receives a message sent through Slack's control API, which shows the answer, buttons and violations", async () => {
  const { slack, controlled } = await openSlackPlayground();
  onTestFinished(slack.close);
  const { ask, read } = await open(controlled);
  await startBolt(slack, (app) => {
    app.message(async ({ message, say }) => {
      if (message.subtype !== undefined) return;
      await say({ text: `You said: ${message.text}`, blocks: [{ type: "actions", elements: [BUTTON] }] });
    });
    app.action("again", async ({ ack, respond }) => {
      await ack();
      await respond("Pressed.");
    });
  });
  const sent = await ask("POST", "/messages", { channel: "direct", person: "eve", text: "hello" });
  const place = "/messages?channel=direct&person=eve";
  await slack.until(() => slack.requests.some(({ method, status }) => method === "chat.postMessage" && status === 200));
  const [question, answer] = await read(place);
  expect(sent).toEqual({ id: question?.id });
  expect(answer).toMatchObject({ author: "Palaver", text: "You said: hello", buttons: ["Again"] });
  const press = { channel: "direct", person: "eve", id: answer?.id, button: "Again" };
  expect(await ask("POST", "/presses", press)).toMatchObject({ isAcknowledged: true });
  expect(await ask("POST", "/presses", { ...press, button: "Stop" })).toHaveProperty("error");
  expect(await ask("GET", "/violations")).toEqual([]);
});

test("discord.js receives a message sent through Discord's control API, which shows the answer and a planned fault", async () => {
  const { discord, controlled } = await openDiscordPlayground();
  onTestFinished(discord.close);
  const { ask, read } = await open(controlled);
  const client = await startClient(discord);
  client.on(Events.MessageCreate, (message) => {
    if (!message.author.bot) void message.reply("Yes?");
  });
  const route = "POST /channels/:channel/messages";
  expect(await ask("POST", "/faults", { route, status: 500 })).toEqual({});
  expect(await ask("POST", "/faults", { route: "POST /nothing", status: 500 })).toHaveProperty("error");
  await ask("POST", "/messages", { text: "hello", mention: true });
  await discord.until(() => discord.requests.some((one) => one.route === route && one.status === 200));
  const texts = (await read("/messages?channel=general")).map(({ author, text }) => [author, text]);
  expect(texts).toEqual([
    ["ada", `<@${discord.bot.id}> hello`],
    ["palaver", "Yes?"],
  ]);
  expect(await ask("GET", "/requests")).toContainEqual(expect.objectContaining({ route, status: 500 }));
});
