import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { MessageRow } from "../../adapters/local/page/wire.ts";
import { makeDataDir, type RunningService, runService, startService } from "../../lab/support/service.ts";
import { events, hanging, json, ROLE, startFaultServer, stream, words } from "../support/fault-server.ts";
import type { OnEnd } from "../support/listen.ts";
import { connectLocal, isBot, isFinal } from "../support/local-client.ts";
import { shareScene } from "./crew.ts";

/** A service that the tests in a `describe` share. They can restart it with its data. */
async function startShared(onEnd: OnEnd) {
  const { path, remove } = await makeDataDir();
  onEnd(remove);
  async function open(): Promise<RunningService> {
    const service = await startService(path);
    onEnd(async () => void (await service.end("SIGKILL")));
    return service;
  }
  let service = await open();
  return {
    end: () => service.end("SIGTERM"),
    restart: async () => void (service = await open()),
    /** A client that shows only its own chat. */
    async enter(chat: string) {
      const client = await connectLocal(service.url);
      onTestFinished(() => client.close());
      const inChat = (all: MessageRow[]) => all.filter(({ chatId }) => chatId === chat);
      return {
        send: (text: string, nonce?: string) => client.send(text, { chat, nonce }),
        repeats: client.repeats,
        messages: () => inChat(client.messages()),
        until: async (holds: (messages: MessageRow[]) => boolean) =>
          inChat(await client.until((all) => holds(inChat(all)))),
        close: client.close,
      };
    },
  };
}

describe("the service as a process", () => {
  const shared = shareScene(startShared);

  test("the service answers at the page, and the answer grows", async () => {
    const client = await shared().enter("growing");
    await client.send("say: one two three four five six seven eight nine ten eleven twelve");
    const messages = await client.until((all) => all.some(isFinal));
    const answer = messages.find(isFinal);
    expect(answer?.text).toBe("one two three four five six seven eight nine ten eleven twelve");
    expect(answer?.buttons.map(({ action }) => action)).toEqual(["regenerate", "explain", "good", "bad"]);
  });

  test("ten conversations at once keep their order, and none waits for a flooded conversation", async () => {
    const flooded = await shared().enter("flood");
    const flood = Array.from({ length: 40 }, (_, index) => flooded.send(`say: flood ${index}`));
    const calm = Array.from({ length: 9 }, async (_, index) => {
      const client = await shared().enter(`calm${index}`);
      for (const [count, text] of ["first", "second"].entries()) {
        await client.send(`say: ${text} in ${index}`);
        await client.until((all) => all.filter(isFinal).length > count);
      }
      return client
        .messages()
        .filter(isFinal)
        .map(({ text }) => text);
    });
    const answers = await Promise.all(calm);
    expect(answers).toEqual(answers.map((_, index) => [`first in ${index}`, `second in ${index}`]));
    await Promise.all(flood);
    const messages = await flooded.until((all) =>
      all.some((message) => isFinal(message) && message.text.includes("flood 39")),
    );
    const numbers = messages.filter(isFinal).map(({ text }) => Number(/flood (\d+)/.exec(text)?.[1]));
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
  });

  test("a message that a page sends twice is one message with one answer, and no row arrives twice", async () => {
    const client = await shared().enter("twice");
    const nonce = randomUUID();
    const ids = await Promise.all([client.send("say: once", nonce), client.send("say: once", nonce)]);
    expect(new Set(ids).size).toBe(1);
    await client.until((all) => all.some(isFinal));
    expect(await client.send("say: once", nonce)).toBe(ids[0]);
    await client.send("say: later");
    const messages = await client.until((all) => all.some((message) => isFinal(message) && message.text === "later"));
    expect(messages.map(({ text }) => text)).toEqual(["say: once", "once", "say: later", "later"]);
    expect(client.repeats()).toBe(0);
  });

  test("the service remembers a conversation after a restart", async () => {
    const client = await shared().enter("remembered");
    await client.send("My name is Ada.");
    await client.until((all) => all.some(isFinal));
    client.close();
    expect(await shared().end()).toBe(0);
    await shared().restart();
    const again = await shared().enter("remembered");
    await again.send("What is my name?");
    const messages = await again.until((all) => all.filter(isFinal).length === 2);
    expect(messages.findLast(isBot)?.text).toContain("Ada");
  });

  test("a running answer finishes during the grace period of the shutdown", async () => {
    const client = await shared().enter("ending");
    await client.send("Count to 40");
    await client.until((all) => all.some(isBot));
    const ended = shared().end();
    const [answer] = (await client.until((all) => all.some(isFinal))).filter(isFinal);
    expect(answer?.text).toMatch(/40$/);
    expect(await ended).toBe(0);
  });

  test("the service lists every problem of its configuration at once, without values", async () => {
    const { code, output } = await runService({
      PORT: "none",
      DISCORD_TOKE: "canary-secret",
      GATEWAY_API_KEY: "canary-secret",
    });
    expect(code).toBe(78);
    expect(output).toContain("PORT");
    expect(output).toContain("did you mean DISCORD_TOKEN?");
    expect(output).toContain("GATEWAY_BASE_URL");
    expect(output).not.toContain("canary-secret");
  });
});

describe("kill -9 in the middle of a stream", () => {
  let folder: Awaited<ReturnType<typeof makeDataDir>>;
  beforeAll(async () => void (folder = await makeDataDir()));
  afterAll(() => folder.remove());

  test("an answer that kill -9 interrupts six times is complete, in the same messages", async () => {
    const text = Array.from({ length: 2_500 }, (_, index) => String(index + 1)).join(" ");
    const gateway = await startHaltingGateway(text);
    const { env } = gateway;
    let ids: number[] = [];
    let shown = "";
    for (let round = 0; round < KILLS; round++) {
      gateway.haltAt((round + 1) * FURTHER_CHARS);
      const service = await startService(folder.path, env);
      const client = await connectLocal(service.url);
      if (round === 0) await client.send("Count");
      const before = shown;
      // The previous run's text is visible at once. Longer text is from this run.
      shown = toText(await client.until((all) => toText(all).length > before.length));
      expect(text.startsWith(shown)).toBe(true);
      const known = ids;
      ids = client
        .messages()
        .filter(isBot)
        .map(({ id }) => id);
      expect(ids.slice(0, known.length)).toEqual(known);
      client.close();
      await service.end("SIGKILL");
    }
    gateway.haltAt(Number.POSITIVE_INFINITY);
    const service = await startService(folder.path, env);
    onTestFinished(async () => void (await service.end("SIGKILL")));
    const client = await connectLocal(service.url);
    const messages = await client.until((all) => all.filter(isBot).every(isFinal) && toText(all) === text);
    client.close();
    expect(
      messages
        .filter(isBot)
        .map(({ id }) => id)
        .slice(0, ids.length),
    ).toEqual(ids);
    expect(await service.end("SIGTERM")).toBe(0);
  });
});

/** One more than the number of deaths without progress after which an event is given up. */
const KILLS = 6;
/** Longer than the hidden text that counts as seen. Each attempt gets this much further than the previous one. */
const FURTHER_CHARS = 500;

/**
 * A gateway whose answers pause after this many characters. A request to continue an answer starts the answer again.
 */
async function startHaltingGateway(text: string) {
  let haltsAt = 0;
  const { url } = await startFaultServer((response, received) => {
    if (!received.path.endsWith("/chat/completions")) return json(404, {})(response, received);
    const answer = haltsAt > text.length ? events(stream(text)) : hanging(ROLE, words(text.slice(0, haltsAt)));
    return answer(response, received);
  });
  return {
    env: { GATEWAY_BASE_URL: url, GATEWAY_API_KEY: "none", CHAT_MODEL: "halting" },
    haltAt: (chars: number) => void (haltsAt = chars),
  };
}

function toText(messages: readonly MessageRow[]): string {
  return messages
    .filter(isBot)
    .map(({ text }) => text)
    .join(" ");
}
