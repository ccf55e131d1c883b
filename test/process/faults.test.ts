import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { createRandom, type Random } from "../../lab/pacing/random.ts";
import { startEngine } from "../../lab/support/engine.ts";
import { action, ada, ben, deleted, edited, message } from "../../lab/support/events.ts";
import { fakePlatform, type Trouble } from "../../lab/support/fake-platform.ts";
import type { ChatCompletionChunk } from "../../src/gateway/chunks.ts";
import type { Gateway, StreamOptions } from "../../src/gateway/client.ts";
import { GatewayError } from "../../src/gateway/errors.ts";
import type { ChatRequest } from "../../src/gateway/request.ts";
import type { InboundEvent, MessageEvent } from "../../src/port/events.ts";
import { toTurnId } from "../../src/port/ids.ts";

const QUESTIONS = 250;
const CONVERSATIONS = 8;

/** Answers with the question's own words, in chunks. Sometimes it breaks off. */
function moodyGateway(random: Random): Gateway {
  async function streamChat({ messages }: ChatRequest, signal: AbortSignal, { onChunk }: StreamOptions): Promise<void> {
    const content = messages.at(-1)?.content;
    const question = typeof content === "string" ? content : "";
    const chunk = (content: string, finish: string | null = null): ChatCompletionChunk => ({
      id: "chatcmpl-1",
      model: "moody",
      choices: [{ index: 0, delta: { content }, finish_reason: finish }],
    });
    const pieces = `[${question}] ${"and so on ".repeat(random.pick([0, 1, 5, 60]))}end`.match(/[^]{1,40}/g) ?? [];
    const breaksAt = random.next() < 0.1 ? random.between(0, pieces.length) : Infinity;
    for (const [index, piece] of pieces.entries()) {
      await sleep(random.between(0, 4), undefined, { signal }).catch(() => signal.throwIfAborted());
      if (index >= breaksAt) throw new GatewayError("interrupted", "cut");
      onChunk(chunk(piece));
    }
    onChunk(chunk("", "stop"));
  }
  return { streamChat, close: async () => {} } as unknown as Gateway;
}

function moodyPlatform(random: Random) {
  const platform = fakePlatform({ maxLength: 300 });
  platform.setTrouble((): Trouble | undefined => {
    const dice = random.next();
    if (dice < 0.03) return { kind: "rate-limited", retryAfterMs: random.between(1, 20) };
    if (dice < 0.05) return { kind: "unavailable", written: random.next() < 0.5 };
    return dice < 0.4 ? sleep(random.between(0, 6)) : undefined;
  });
  return platform;
}

/** People's actions on a question after they asked it. Usually there are none. */
function afterthoughts(random: Random, question: MessageEvent, author: MessageEvent["author"]): InboundEvent[] {
  const { conversationId } = question;
  const turnId = toTurnId(question.key);
  const dice = random.next();
  if (dice < 0.1) return [edited(question, `${question.text} changed`)];
  if (dice < 0.2) return [deleted(question)];
  if (dice < 0.3) return [action("stop", turnId, { author, conversationId })];
  if (dice < 0.35)
    return [edited(question, `${question.text} changed`), action("stop", turnId, { author, conversationId })];
  if (dice < 0.4) return [edited(question, `${question.text} changed`), deleted(question)];
  if (dice < 0.5) return [0, 1].map(() => action("retry", turnId, { author, conversationId }));
  return [];
}

test("every question has exactly one ending under random faults of the gateway, the platform and people", async () => {
  const seed = Math.floor(Math.random() * 1e6);
  onTestFinished(({ task }) => {
    if (task.result?.state === "fail") process.stdout.write(`The seed of the faults was ${seed}.\n`);
  });
  const random = createRandom(seed);
  const database = new DatabaseSync(":memory:");
  const platform = moodyPlatform(random);
  const engine = startEngine({ database, platform, gateway: moodyGateway(random), maxEntries: 500 });
  const asked: MessageEvent[] = [];
  const gone = new Set<string>();

  async function ask(index: number): Promise<void> {
    const author = random.pick([ada, ben]);
    const conversationId = `test:${index % CONVERSATIONS}`;
    const question = message(`q${index}`, { author, conversationId });
    await sleep(random.between(0, 4_000));
    asked.push(question);
    await engine.accept(question);
    for (const event of afterthoughts(random, question, author)) {
      await sleep(random.wait(60));
      await engine.accept(event);
      if (event.kind === "deleted") gone.add(question.text);
    }
  }
  await Promise.all(Array.from({ length: QUESTIONS }, (_, index) => ask(index)));
  await engine.idle();

  expect(platform.violations).toEqual([]);
  const drafts = platform.channel.map(({ draft }) => draft);
  expect(drafts.filter(({ streaming }) => streaming)).toEqual([]);
  for (const { markdown, buttons } of drafts) {
    const isOrphan = markdown.includes("_The question was deleted.");
    const offered = isOrphan ? ["delete"] : /Press Retry|stopped/i.test(markdown) ? ["retry"] : [];
    // The answer to an edited question comes after the previous answer.
    expect(buttons.map(({ action }) => action).filter((action) => action !== "show")).toEqual(offered);
  }

  const turns = await Promise.all(asked.map(({ key }) => engine.records.load(toTurnId(key))));
  const shown = new Set(platform.channel.map(({ id }) => id));
  const answered: string[] = [];
  for (const turn of turns) {
    if (turn === undefined || turn.messageIds.length === 0) continue;
    expect(turn.phase).toBe("final");
    expect(turn.posted.length).toBeGreaterThan(0);
    expect(turn.posted.filter((id) => !shown.has(id))).toEqual([]);
    answered.push(...turn.messageIds);
  }
  const left = asked.filter(({ text }) => !gone.has(text)).map(({ messageId }) => messageId);
  expect(left.filter((id) => !answered.includes(id))).toEqual([]);
  expect(new Set(answered).size).toBe(answered.length);
  expect(database.prepare("SELECT count(*) AS open FROM queue_event WHERE event IS NOT NULL").get()).toEqual({
    open: 0,
  });
  for (let index = 0; index < CONVERSATIONS; index++) {
    const { entries } = await engine.history.read(`test:${index}`, { maxEntries: 1_000 });
    const said = entries.flatMap(({ author, messages }) =>
      author === undefined ? [] : messages.map(({ content }) => JSON.stringify(content)),
    );
    expect(new Set(entries.map(({ id }) => id)).size).toBe(entries.length);
    expect(said.filter((text) => gone.has(/q\d+/.exec(text)?.[0] ?? ""))).toEqual([]);
  }
});
