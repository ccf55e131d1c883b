import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import type { MessageRow } from "../../adapters/local/page/wire.ts";
import { createHistory } from "../../src/history/history.ts";
import { openDatabase } from "../../src/store/database.ts";
import { createStores } from "../../src/store/keyv.ts";
import { connectLocal, isBot, isFinal, type LocalClient } from "../support/local-client.ts";
import { silent } from "../support/log.ts";
import { createRandom, type Random } from "../support/pacing/random.ts";
import { answerTo, startParrotGateway } from "../support/parrot-gateway.ts";
import { makeDataDir, startService } from "../support/service.ts";

const KILLS = 6;
const CHATS = ["east", "north", "south"];
/** Questions wait in each conversation at the same time, so that some are answered together. */
const QUESTIONS_PER_KILL = 4;

interface Question {
  chat: string;
  text: string;
  nonce: string;
  id: number | undefined;
}

const squeeze = (text: string): string => text.replaceAll(/\s+/g, "");

/** Sends what has no answer from the server yet; what was on its way when the process died is sent again. */
async function sendOpen(client: LocalClient, questions: Question[]): Promise<void> {
  for (const question of questions.filter(({ id }) => id === undefined)) {
    const { text, chat, nonce } = question;
    question.id = await client.send(text, { chat, nonce }).catch(() => undefined);
  }
}

/** Resolves when another answer shows its end, or all have. */
async function untilNextEnd(client: LocalClient, asked: Question[]): Promise<void> {
  const before = client.messages().filter(isFinal).length;
  await client.until((all) => all.filter(isFinal).length > before || isDone(all, asked));
}

/** Resolves when every conversation shows more of its answers, or all of them: none of them was begun in vain. */
async function untilAllMoved(client: LocalClient, asked: Question[]): Promise<void> {
  const shownIn = (chat: string) => answersIn(client.messages(), chat).reduce((sum, { text }) => sum + text.length, 0);
  const before = new Map(CHATS.map((chat) => [chat, shownIn(chat)]));
  const isOver = (chat: string) => isDone(client.messages(), asked, [chat]);
  await client.until(() => CHATS.every((chat) => shownIn(chat) > (before.get(chat) ?? 0) || isOver(chat)));
}

function ask(random: Random, asked: Question[]): void {
  for (let count = 0; count < QUESTIONS_PER_KILL; count++) {
    const chat = random.pick(CHATS);
    asked.push({ chat, text: `q${asked.length}`, nonce: `the-nonce-of-q${asked.length}`, id: undefined });
  }
}

/** The answers of one conversation: which questions each names, and its whole text over all its messages. */
function answersIn(messages: MessageRow[], chat: string): Array<{ names: string[]; text: string }> {
  const answers: Array<{ names: string[]; text: string }> = [];
  for (const { text } of messages.filter((message) => isBot(message) && message.channelId === chat)) {
    const [, names] = /^Answer to ([q\d ]+)\./.exec(text) ?? [];
    const last = answers.at(-1);
    if (names !== undefined || last === undefined) answers.push({ names: names?.split(" ") ?? [], text });
    else last.text += text;
  }
  return answers;
}

/** Whether nothing more is to come: a message of a long answer looks complete before the next one is posted. */
function isDone(messages: MessageRow[], asked: Question[], chats = CHATS): boolean {
  const answers = chats.flatMap((chat) => answersIn(messages, chat));
  const isWhole = answers.every(({ names, text }) => squeeze(text).length >= wholeOf(names).length);
  const expected = asked.filter(({ chat }) => chats.includes(chat));
  return isWhole && answers.flatMap(({ names }) => names).length >= expected.length;
}

function wholeOf(names: string[]): string {
  return squeeze(answerTo(names.join("\n\n")));
}

function checkAnswers(messages: MessageRow[], asked: Question[]): void {
  for (const chat of CHATS) {
    const answers = answersIn(messages, chat);
    const expected = asked.filter((question) => question.chat === chat).map(({ text }) => text);
    expect(answers.flatMap(({ names }) => names)).toEqual(expected);
    // What a cut closed and opened again, and the heads of tables, are not the model's: the text has no such cut.
    for (const { names, text } of answers) expect(squeeze(text)).toBe(wholeOf(names));
  }
  const offered = messages.filter(isBot).flatMap(({ buttons }) => buttons.map(({ action }) => action));
  expect(new Set(offered)).toEqual(new Set(["regenerate", "explain", "good", "bad"]));
  expect(messages.filter(isBot).every(isFinal)).toBe(true);
}

async function checkHistory(dataDir: string, asked: Question[]): Promise<void> {
  using database = openDatabase(join(dataDir, "palaver.sqlite"));
  const stores = createStores({ redisUrl: undefined, database, log: silent });
  const history = createHistory({ ...stores, ttlMs: 3_600_000, log: silent, now: Date.now });
  for (const chat of CHATS) {
    const { entries } = await history.read(`local:${chat}`, { maxEntries: 1_000 });
    expect(new Set(entries.map(({ id }) => id)).size).toBe(entries.length);
    const said = entries
      .map(({ messages }) => JSON.stringify(messages[0]?.content))
      .map((text) => JSON.parse(text) as string);
    expect(said.filter((text) => text.startsWith("q"))).toEqual(
      asked.filter((question) => question.chat === chat).map(({ text }) => text),
    );
    let waiting: string[] = [];
    for (const text of said) {
      if (text.startsWith("q")) waiting.push(text);
      else {
        expect(text).toBe(answerTo(waiting.join("\n\n")));
        waiting = [];
      }
    }
    expect(waiting).toEqual([]);
  }
  expect(database.prepare("SELECT count(*) AS open FROM queue_event WHERE event IS NOT NULL").get()).toEqual({
    open: 0,
  });
  await stores.close();
}

test(`every question has one whole answer, in order, after ${KILLS} kills at random moments`, async () => {
  const seed = Math.floor(Math.random() * 1e6);
  onTestFinished(({ task }) => {
    if (task.result?.state === "fail") process.stdout.write(`The seed of the kills was ${seed}.\n`);
  });
  const random = createRandom(seed);
  const folder = await makeDataDir();
  onTestFinished(folder.remove);
  const gateway = await startParrotGateway(6);
  onTestFinished(gateway.close);
  const model = { GATEWAY_BASE_URL: gateway.url, GATEWAY_API_KEY: "none", CHAT_MODEL: "parrot" };
  // Wide enough that nothing is left out, which an answer would say.
  const env = { ...model, HISTORY_MAX_MESSAGES: "1000", HISTORY_MAX_TOKENS: "1000000" };
  const asked: Question[] = [];

  for (let kill = 0; kill < KILLS; kill++) {
    const service = await startService(folder.path, env);
    const client = await connectLocal(service.url);
    ask(random, asked);
    const sending = sendOpen(client, asked);
    await sleep(random.between(0, 600));
    // Every other time just after an answer has ended, when the end is seen but not yet known to be done. Answers that
    // never came any further, however slow the machine is, would be given up.
    if (kill % 2 === 1) {
      await untilAllMoved(client, asked);
      await untilNextEnd(client, asked);
    }
    client.close();
    await service.end("SIGKILL");
    await sending;
  }

  const service = await startService(folder.path, env);
  onTestFinished(async () => void (await service.end("SIGKILL")));
  const client = await connectLocal(service.url);
  await sendOpen(client, asked);
  const messages = await client.until((all) => isDone(all, asked) && all.filter(isBot).every(isFinal));
  client.close();
  expect(await service.end("SIGTERM")).toBe(0);
  checkAnswers(messages, asked);
  await checkHistory(folder.path, asked);
});
