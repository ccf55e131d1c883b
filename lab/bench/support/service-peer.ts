/**
 * The smallest bot that streams its answers. Like many bots, it uses the platform's own library and the openai SDK,
 * edits once per second, and posts a new message when one is full. It stores nothing and recovers from nothing.
 */
import { App, LogLevel } from "@slack/bolt";
import { Client, Events, GatewayIntentBits, type Message } from "discord.js";
import { OpenAI } from "openai";
import { reportCpu } from "./service-cpu.ts";

/** A posted message that is still being edited. */
interface Writing {
  maxLength: number;
  post(text: string): Promise<(text: string) => Promise<unknown>>;
}

const EDIT_MS = 1_000;

reportCpu();
const env = JSON.parse(process.argv[2] ?? "{}") as Record<string, string>;
const openai = new OpenAI({ baseURL: `${env["GATEWAY_BASE_URL"]}/v1`, apiKey: "none", maxRetries: 0 });
await (env["DISCORD_TOKEN"] === undefined ? startSlack() : startDiscord());

async function answer(question: string, { maxLength, post }: Writing): Promise<void> {
  const messages = [
    { role: "system" as const, content: "Be kind." },
    { role: "user" as const, content: question },
  ];
  const stream = await openai.chat.completions.create({ model: "paced", messages, stream: true });
  let text = "";
  let edit: ((text: string) => Promise<unknown>) | undefined;
  let lastMs = 0;
  let isWriting = false;
  let writing: Promise<unknown> = Promise.resolve();
  for await (const chunk of stream) {
    const more = chunk.choices[0]?.delta.content ?? "";
    if (text.length + more.length > maxLength) {
      await writing;
      await edit?.(text);
      [text, edit] = ["", undefined];
    }
    text += more;
    if (isWriting || performance.now() - lastMs < EDIT_MS || text.trim() === "") continue;
    lastMs = performance.now();
    isWriting = true;
    writing = (edit === undefined ? post(text).then((made) => (edit = made)) : edit(text)).finally(
      () => (isWriting = false),
    );
  }
  await writing;
  if (edit === undefined) await post(text);
  else await edit(text);
}

async function startDiscord(): Promise<void> {
  const { Guilds, GuildMessages, MessageContent } = GatewayIntentBits;
  const client = new Client({
    intents: [Guilds, GuildMessages, MessageContent],
    allowedMentions: { parse: [] },
    rest: { api: env["DISCORD_API_URL"] ?? "" },
  });
  client.on(Events.MessageCreate, (message: Message) => {
    if (message.author.bot) return;
    const post = async (text: string) => {
      const posted = await message.reply(text);
      return (next: string) => posted.edit(next);
    };
    void answer(message.content.replace(/<@\d+>/, "").trim(), { maxLength: 2_000, post });
  });
  await client.login(env["DISCORD_TOKEN"]);
}

async function startSlack(): Promise<void> {
  const app = new App({
    token: env["SLACK_BOT_TOKEN"] ?? "",
    appToken: env["SLACK_APP_TOKEN"] ?? "",
    socketMode: true,
    clientOptions: { slackApiUrl: env["SLACK_API_URL"] ?? "" },
    logLevel: LogLevel.ERROR,
  });
  app.event("app_mention", async ({ event, client }) => {
    const { channel, ts: thread_ts, text: question } = event;
    const post = async (text: string) => {
      const { ts = "" } = await client.chat.postMessage({ channel, thread_ts, text });
      return (next: string) => client.chat.update({ channel, ts, text: next });
    };
    await answer(question.replace(/<@\w+>/, "").trim(), { maxLength: 3_900, post });
  });
  await app.start();
}
