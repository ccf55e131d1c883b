import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { MessageRow } from "../../adapters/local/page/wire.ts";
import { events, hanging, json, ROLE, startFaultServer, stream, words } from "../support/fault-server.ts";
import { connectLocal, isBot, isFinal, type LocalClient } from "../support/local-client.ts";
import { makeDataDir, type RunningService, runService, startService } from "../support/service.ts";

/** Starts the service on a folder of its own and connects to its page; both are gone after the test. */
async function open(dataDir?: string): Promise<{ service: RunningService; client: LocalClient; dataDir: string }> {
  let path = dataDir;
  if (path === undefined) {
    const folder = await makeDataDir();
    onTestFinished(folder.remove);
    path = folder.path;
  }
  const service = await startService(path);
  onTestFinished(async () => void (await service.end("SIGKILL")));
  const client = await connectLocal(service.url);
  onTestFinished(() => client.close());
  return { service, client, dataDir: path };
}

describe("the service as a process", () => {
  test("answers at the page, and the answer grows", async () => {
    const { client } = await open();
    await client.send("say: one two three four five six seven eight nine ten eleven twelve");
    const messages = await client.until((all) => all.some(isFinal));
    const answer = messages.find(isFinal);
    expect(answer?.text).toBe("one two three four five six seven eight nine ten eleven twelve");
    expect(answer?.buttons.map(({ action }) => action)).toEqual(["regenerate", "explain", "good", "bad"]);
  });

  test("remembers the conversation after a restart", async () => {
    const { service, client, dataDir } = await open();
    await client.send("My name is Ada.");
    await client.until((all) => all.some(isFinal));
    client.close();
    expect(await service.end("SIGTERM")).toBe(0);
    const again = await open(dataDir);
    await again.client.send("What is my name?");
    const messages = await again.client.until((all) => all.filter(isFinal).length === 2);
    expect(messages.findLast(isBot)?.text).toContain("Ada");
  });

  test("takes a message sent twice as one", async () => {
    const { client } = await open();
    const ids = await Promise.all([
      client.send("say: hello", { nonce: "the-same-nonce" }),
      client.send("say: hello", { nonce: "the-same-nonce" }),
    ]);
    expect(new Set(ids).size).toBe(1);
    await client.until((all) => all.some(isFinal));
    expect(client.messages().filter(isBot)).toHaveLength(1);
  });

  test("stops an answer at once, and writes it again when asked", async () => {
    const { client } = await open();
    await client.send("Count to 300 slowly");
    const [streaming] = (await client.until((all) => all.some(isBot))).filter(isBot);
    await client.press(streaming?.id ?? 0, "stop");
    const [stopped] = (await client.until((all) => all.some(isFinal))).filter(isFinal);
    expect(stopped?.text).toContain("You stopped this answer.");
    expect(stopped?.buttons.map(({ action }) => action)).toEqual(["retry", "explain"]);
    await client.press(stopped?.id ?? 0, "retry");
    await client.until((all) => all.some((message) => message.id === stopped?.id && message.isStreaming));
    expect(client.messages().filter(isBot)).toHaveLength(1);
  });

  test("ends a broken answer in plain words, with the text so far and Retry", async () => {
    const { client } = await open();
    await client.send("sandbox fault: cut=20");
    const [answer] = (await client.until((all) => all.some(isFinal))).filter(isFinal);
    expect(answer?.text).toMatch(/\n\n_Interrupted: .*Retry.*_$/);
    expect(answer?.buttons.map(({ action }) => action)).toEqual(["retry", "explain"]);
  });

  test("lets a running answer finish when it is told to end", async () => {
    const { service, client } = await open();
    await client.send("Count to 40");
    await client.until((all) => all.some(isBot));
    const ended = service.end("SIGTERM");
    const [answer] = (await client.until((all) => all.some(isFinal))).filter(isFinal);
    expect(answer?.text).toMatch(/40$/);
    expect(await ended).toBe(0);
  });

  test("says everything that is wrong with its configuration at once, and no value", async () => {
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

  test("twenty times over: one answer, complete, in the same messages", async () => {
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
      // What the run before left is there at once; more of it is text that this run brought.
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

const KILLS = 20;
/** More than is noted as seen before it is shown: so much further each attempt comes than the one before. */
const FURTHER_CHARS = 500;

/** A gateway whose answers halt behind so many characters. Asked to go on with one, it begins anew. */
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

/** What an answer shows over all its messages. */
function toText(messages: readonly MessageRow[]): string {
  return messages
    .filter(isBot)
    .map(({ text }) => text)
    .join(" ");
}

describe("ten conversations at once, one of them flooded", () => {
  test("keep their order, and none waits for another", async () => {
    const { client } = await open();
    const flood = Array.from({ length: 40 }, (_, index) => client.send(`say: flood ${index}`, { chat: "flood" }));
    const calm = Array.from({ length: 9 }, async (_, index) => {
      for (const text of ["first", "second"]) {
        await client.send(`say: ${text} in ${index}`, { chat: `calm${index}` });
        await client.until((all) => all.some((message) => isFinal(message) && message.text === `${text} in ${index}`));
      }
    });
    await Promise.all([...flood, ...calm]);
    const messages = await client.until((all) =>
      all.some((message) => isFinal(message) && message.text.includes("flood 39")),
    );
    for (let index = 0; index < 9; index++) {
      const answers = messages.filter((message) => isFinal(message) && message.channelId.endsWith(`calm${index}`));
      expect(answers.map(({ text }) => text)).toEqual([`first in ${index}`, `second in ${index}`]);
    }
    const numbers = messages
      .filter((message) => isFinal(message) && message.channelId.endsWith("flood"))
      .map(({ text }) => Number(/flood (\d+)/.exec(text)?.[1]));
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
  });
});
