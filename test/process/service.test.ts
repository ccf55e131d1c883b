import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { MessageRow } from "../../adapters/local/page/wire.ts";
import { makeDataDir, runService, startService } from "../../lab/support/service.ts";
import { events, hanging, json, ROLE, startFaultServer, stream, words } from "../support/fault-server.ts";
import { connectLocal, isBot, isFinal } from "../support/local-client.ts";

describe("the service as a process", () => {
  test("a running answer finishes during the grace period of the shutdown, and no row arrives twice", async () => {
    const { path, remove } = await makeDataDir();
    onTestFinished(remove);
    const service = await startService(path);
    onTestFinished(async () => void (await service.end("SIGKILL")));
    const client = await connectLocal(service.url);
    onTestFinished(() => client.close());
    await client.send("Count to 40");
    await client.until((all) => all.some(isBot));
    const ended = service.end("SIGTERM");
    const [answer] = (await client.until((all) => all.some(isFinal))).filter(isFinal);
    expect(answer?.text).toMatch(/40$/);
    expect(client.repeats()).toBe(0);
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
