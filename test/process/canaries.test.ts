import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import sharp from "sharp";
import { expect, onTestFinished, test } from "vitest";
import type { MessageRow } from "../../adapters/local/page/wire.ts";
import { comeIn, PASSWORD, tryPassword } from "../../lab/support/administrator.ts";
import { startRawServer } from "../../lab/support/mcp-world.ts";
import { createPatience, PATIENCE_MS } from "../../lab/support/patience.ts";
import { makeDataDir, type RunningService, startService } from "../../lab/support/service.ts";
import type { Story } from "../../src/admin/page/wire.ts";
import { startDiscord } from "../support/discord.ts";
import {
  type Answer,
  body,
  chunk,
  cut,
  event,
  events,
  json,
  startFaultServer,
  stream,
  words,
} from "../support/fault-server.ts";
import { connectLocal, isFinal, type LocalClient } from "../support/local-client.ts";
import { startSlack } from "../support/slack.ts";

/** Words from people, the model, files and gateways. No log line above `debug` may contain them. */
const CANARY = "marmalade skies";
const NOT_A_PICTURE = new TextEncoder().encode(CANARY);

const error = { type: `a ${CANARY}`, code: `of ${CANARY}`, param: `messages of ${CANARY}`, message: `Not: ${CANARY}` };

function calls(...given: Array<[name: string, args: string]>): Answer {
  const tool_calls = given.map(([name, args], index) => ({
    index,
    id: `call-${index}`,
    type: "function",
    function: { name, arguments: args },
  }));
  return events(event(chunk({ delta: { tool_calls } })), event(chunk({ finish: "tool_calls" })), event("[DONE]"));
}

/** How to answer a question, by a name in the question. */
const ANSWERS: Readonly<Record<string, Answer>> = {
  text: events(stream(`It is ${CANARY}.`)),
  whole: json(200, { choices: [{ message: { role: "assistant", content: CANARY }, finish_reason: "stop" }] }),
  filter: events(words(CANARY), event(chunk({ finish: `filter ${CANARY}` })), event("[DONE]")),
  object: json(400, { error }),
  string: json(400, { error: CANARY }),
  list: json(422, { detail: [{ loc: ["body", CANARY], msg: CANARY }] }),
  bare: json(403, { object: "error", message: CANARY }),
  line: body(404, "text/plain", `No ${CANARY}`),
  page: body(500, "text/html", `<p>${CANARY}</p>`),
  busy: json(429, { error }, { "retry-after": "0" }),
  redirect: json(302, {}, { location: `http://127.0.0.1:9/${encodeURIComponent(CANARY)}` }),
  site: body(200, "text/html", `<p>${CANARY}</p>`),
  odd: body(200, "application/json", CANARY),
  inside: events(words(CANARY), event({ error })),
  broken: events(words(CANARY), `data: {"${CANARY}\n\n`.repeat(50)),
  cut: cut(words(CANARY)),
  unknown: calls([CANARY, JSON.stringify({ [CANARY]: CANARY })]),
  unreadable: calls(["search_history", `{"${CANARY}`], ["current_time", JSON.stringify({ timezone: CANARY })]),
  fetch: calls(
    ["fetch_url", JSON.stringify({ url: `http://127.0.0.1:9/${CANARY}` })],
    ["fetch_url", JSON.stringify({ url: `https://page.invalid/?${CANARY}` })],
  ),
  acting: calls(["store__buy", JSON.stringify({ what: CANARY })]),
  tools: calls(["search_history", JSON.stringify({ query: CANARY })]),
  draw: calls(["generate_image", JSON.stringify({ prompt: `${CANARY}, declined` })]),
};

/** How to answer a request for an image, by a word in the prompt. */
const PICTURES: Readonly<Record<string, Answer>> = {
  declined: json(200, { candidates: [{ content: { parts: [{ text: `I will not: ${CANARY}` }] } }] }),
  blocked: json(200, { promptFeedback: { blockReason: `for ${CANARY}` } }),
  refused: json(400, { error }),
  nothing: json(200, { candidates: [{ [CANARY]: CANARY }] }),
  junk: json(200, { inlineData: { data: Buffer.from(CANARY).toString("base64") } }),
};

interface ChatRequest {
  messages: Array<{ role: string; content: unknown }>;
}

/** The image for a prompt without any of these words. */
async function drawn(): Promise<Answer> {
  const png = await sharp({ create: { width: 64, height: 64, channels: 3, background: "red" } })
    .png()
    .toBuffer();
  const parts = [{ text: CANARY }, { inlineData: { mimeType: "image/png", data: png.toString("base64") } }];
  return json(200, { candidates: [{ content: { parts } }] });
}

async function startGateway(): Promise<string> {
  const picture = await drawn();
  const { url } = await startFaultServer((response, received) => {
    const { path, json: request } = received;
    if (path.includes(":generateContent")) {
      const asked = JSON.stringify(request);
      const name = Object.keys(PICTURES).find((word) => asked.includes(word));
      return (PICTURES[name ?? ""] ?? picture)(response, received);
    }
    if (path.endsWith("/models")) return json(200, { data: [{ id: `m of ${CANARY}` }] })(response, received);
    if (!path.endsWith("/chat/completions")) return json(404, { error })(response, received);
    const { messages } = request as ChatRequest;
    const isAnswered = messages.at(-1)?.role === "tool";
    const asked = JSON.stringify(messages.findLast(({ role }) => role === "user"));
    const name = isAnswered ? "text" : /answer (\w+)/.exec(asked)?.[1];
    return ANSWERS[name ?? "text"]?.(response, received);
  });
  return url;
}

/** Both platforms and the page at once, with a gateway that puts the words into every text that it can. */
async function startEverything() {
  const folder = await makeDataDir();
  onTestFinished(folder.remove);
  // Everything arrives at once, perhaps on a busy machine. Other tests check how soon Slack gets its acknowledgement.
  const slack = await startSlack({ limits: { ackMs: PATIENCE_MS } });
  const discord = await startDiscord();
  const toolServer = await startFaultServer((response, received) => {
    const { id } = (received.json ?? {}) as { id?: number };
    return json(200, { jsonrpc: "2.0", id, error: { code: -32_000, message: CANARY } })(response, received);
  });
  const inputSchema = { type: "object", properties: { what: { type: "string", description: CANARY } } };
  const store = await startRawServer((method) =>
    method === "tools/list"
      ? { tools: [{ name: "buy", description: CANARY, inputSchema }] }
      : { isError: true, content: [{ type: "text", text: `Not bought: ${CANARY}` }] },
  );
  onTestFinished(store.close);
  const mcpConfig = join(folder.path, "tools.json");
  const mcpServers = { shop: { type: "http", url: `${toolServer.url}/mcp` }, store: { type: "http", url: store.url } };
  await writeFile(mcpConfig, JSON.stringify({ mcpServers }));
  const service = await startService(folder.path, {
    GATEWAY_BASE_URL: await startGateway(),
    GATEWAY_API_KEY: "none",
    CHAT_MODEL: "m",
    IMAGE_MODEL: "painter",
    SLACK_BOT_TOKEN: slack.botToken,
    SLACK_APP_TOKEN: slack.appToken,
    SLACK_API_URL: slack.apiUrl,
    DISCORD_TOKEN: discord.token,
    DISCORD_API_URL: discord.apiUrl,
    DISCORD_THREADS: "off",
    LOCAL_CHAT: "on",
    MCP_CONFIG: mcpConfig,
    ADMIN_PASSWORD: PASSWORD,
    FETCH_URL_HOSTS: "http://127.0.0.1:9,page.invalid",
    LOG_LEVEL: "debug",
  });
  onTestFinished(async () => void (await service.end("SIGKILL")));
  const client = await connectLocal(service.url);
  onTestFinished(() => client.close());
  return { slack, discord, service, client };
}

const isAsking = ({ buttons }: MessageRow): boolean => buttons.some(({ action }) => action === "approve");

/** Resolves when the process has printed nothing for a moment, because late lines count too. */
async function untilQuiet({ lines }: RunningService, enough: () => boolean): Promise<void> {
  const lost = new AbortController();
  const patience = createPatience(() => lost.abort());
  for (let before = -1; !(enough() && before === lines.length) && !lost.signal.aborted; ) {
    if (before !== lines.length) patience.moved();
    before = lines.length;
    await sleep(1_000);
  }
  patience.end();
}

async function askAtPage({ url }: RunningService, client: LocalClient): Promise<void> {
  const post = (path: string, sent: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
    fetch(`${url}/local${path}`, { method: "POST", body: sent, headers: { origin: url, ...headers } });
  const asJson = { "content-type": "application/json" };
  const upload = async (name: string, bytes: Uint8Array<ArrayBuffer>) => {
    const kept = await post("/files", bytes, { "x-file-name": encodeURIComponent(name) });
    return ((await kept.json()) as { id: string }).id;
  };
  await client.send(`/persona You speak of ${CANARY}`, { chat: "persona" });
  await client.send(`/model ${CANARY}`, { chat: "persona" });
  await client.send(`/imagine ${CANARY} --ar ${CANARY} --count 99`, { chat: "wish" });
  for (const name of Object.keys(ANSWERS)) {
    await client.send(`${CANARY}, answer ${name}`, { chat: `chat-${name}` });
  }
  for (const name of ["drawn", ...Object.keys(PICTURES)]) {
    await client.send(`/imagine ${CANARY}, ${name}`, { chat: `picture-${name}` });
  }
  for (const type of ["png", "txt", "pdf", "docx", "zip"]) {
    const fileIds = [await upload(`${CANARY}.${type}`, NOT_A_PICTURE)];
    await client.send(`What is in it? ${CANARY}`, { chat: `file-${type}`, fileIds });
    await client.send(`/imagine ${CANARY}`, { chat: `reference-${type}`, fileIds }).catch(() => {});
  }
  await client.send(`/unknown ${CANARY}`, { chat: "x" }).catch(() => {});
  await post("/messages", `{"${CANARY}`, asJson);
  await post("/messages", JSON.stringify({ [CANARY]: CANARY }), asJson);
  await post(`/${encodeURIComponent(CANARY)}`, "{}", asJson);
  await fetch(`${url}/${encodeURIComponent(CANARY)}?${encodeURIComponent(CANARY)}`);
}

const isWhole = ({ text, ...message }: MessageRow): boolean =>
  isFinal({ text, ...message }) && text.startsWith("It is ");

async function editAtPage({ url }: RunningService, client: LocalClient): Promise<void> {
  const ended = (await client.until((all) => all.some(isWhole))).find(isWhole);
  const asked = client.messages().find(({ id }) => id === ended?.replyTo);
  const headers = { origin: url, "content-type": "application/json" };
  const body = JSON.stringify({ nonce: randomUUID(), text: `${CANARY}, answer cut` });
  expect((await fetch(`${url}/local/messages/${asked?.id}/edit`, { method: "POST", headers, body })).status).toBe(200);
}

/** Signs in after a wrong password and opens every view. */
async function lookAtDashboard({ url }: RunningService): Promise<void> {
  await tryPassword(url, CANARY);
  const { ask, read } = await comeIn(url);
  const [story] = await read<Story[]>("failures");
  await read(`turns/${story?.turnId}/messages`, { method: "POST" });
  const word = encodeURIComponent(CANARY);
  for (const path of [
    "overview",
    "trends/hour",
    "failures",
    "turns",
    `turns/${word}/trace`,
    "doctor",
    "settings",
    word,
  ]) {
    await (await ask(path)).arrayBuffer();
  }
  for (const path of ["doctor", "stop", word]) {
    const headers = { "content-type": "application/json" };
    await (await ask(path, { method: "POST", headers, body: JSON.stringify({ [CANARY]: CANARY }) })).arrayBuffer();
    await (await ask(path, { method: "POST", headers, body: `{"${CANARY}` })).arrayBuffer();
  }
}

test("no log line above debug contains a word of a person, the model, a file or the gateway after any failure", async () => {
  const { slack, discord, service, client } = await startEverything();
  await askAtPage(service, client);
  const asking = (await client.until((all) => all.some(isAsking))).find(isAsking);
  await client.press(asking?.id ?? 0, "approve");
  await editAtPage(service, client);

  const ada = slack.user({ name: CANARY });
  const general = slack.channel({ name: "general", members: [ada] });
  const refusal = { error: "invalid_blocks", words: [`[ERROR] ${CANARY}`] };
  slack.workspace.scopes.delete("files:read");
  slack.setStreaming("unknown_method");
  slack.failNext("chat.postMessage", refusal, 3);
  slack.failNext("chat.update", refusal, 2);
  slack.failNext("views.open", refusal);
  for (const name of Object.keys(ANSWERS)) ada.mention(general, `${CANARY}, answer ${name}`);
  ada.upload(general, [{ name: `${CANARY}.png`, bytes: NOT_A_PICTURE }], `<@${slack.workspace.bot.id}> ${CANARY}`);
  for (const text of [CANARY, `${CANARY}, declined`, ""]) await ada.command("/imagine", text, general);
  await ada.command("/persona", `You speak of ${CANARY}`, general);

  const guild = discord.addGuild();
  const channel = discord.addChannel(guild, "general");
  const ben = discord.addUser(CANARY, guild);
  const bad = { status: 400, code: 50035, message: `Invalid Form Body: ${CANARY}` } as const;
  discord.faults.failNext("POST /channels/:channel/messages", { ...bad, times: 3 });
  discord.faults.failNext("PATCH /channels/:channel/messages/:message", { ...bad, times: 2 });
  for (const name of Object.keys(ANSWERS)) {
    discord.people.say(channel, ben, `${CANARY}, answer ${name}`, { mentionBot: true });
  }
  const attachments = [{ name: `${CANARY}.png`, bytes: NOT_A_PICTURE }];
  discord.people.say(channel, ben, CANARY, { mentionBot: true, attachments });
  for (const prompt of [CANARY, `${CANARY}, declined`]) discord.people.command(channel, ben, "imagine", { prompt });

  for (const said of [ada.mention(general, "hello"), ada.mention(general, "goodbye")]) {
    ada.edit(said, `<@${slack.workspace.bot.id}> ${CANARY}, answer object`);
  }
  discord.people.edit(discord.people.say(channel, ben, "hello", { mentionBot: true }), `${CANARY}, answer object`);
  await lookAtDashboard(service);

  // At this point every failure has happened, and has quoted the words.
  const count = (words: string) => service.lines.filter((line) => line.includes(words)).length;
  const isOver = () =>
    client.messages().filter(isFinal).length >= Object.keys(ANSWERS).length + Object.keys(PICTURES).length &&
    count("the model gave no complete answer") > 3 * 10 &&
    count("an image was not created") >= Object.keys(PICTURES).length &&
    count("a write was refused") > 3 &&
    count("a tool server is unavailable; retrying") > 0 &&
    count("is not one of the models") > 0 &&
    count("marmalade") > 30;
  await untilQuiet(service, isOver);
  expect(isOver()).toBe(true);
  await service.end("SIGTERM");

  const lines = service.lines.map((line) => JSON.parse(line) as { level: string });
  const told = lines.filter(({ level }) => level !== "debug" && level !== "trace").map((line) => JSON.stringify(line));
  expect(told.filter((line) => line.includes("marmalade"))).toEqual([]);
});
