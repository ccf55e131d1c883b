import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { isOnRedis } from "../../lab/support/bot-store.ts";
import { startEngine } from "../../lab/support/engine.ts";
import { action, command, message } from "../../lab/support/events.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { defineTool, type Tool } from "../../src/tools/tool.ts";
import { type Answer, chunk, DONE, event, events, json, startFaultServer, stream } from "../support/fault-server.ts";
import { connect } from "../support/gateway-client.ts";

const SIGNATURE = "signature-of-the-call";
const THOUGHT = "thought-before-the-call";
const extra_content = { google: { thought_signature: SIGNATURE } };
const CALL = {
  index: 0,
  id: "c",
  type: "function",
  function: { name: "shop__buy", arguments: '{"note":"tea"}' },
  extra_content,
};
const ASKS = events(
  event(chunk({ delta: { role: "assistant", content: "Buying.", reasoning_content: THOUGHT, tool_calls: [CALL] } })),
  event(chunk({ finish: "tool_calls" })),
  DONE,
);

interface Body {
  messages: Array<{ role: string; reasoning_content?: string; tool_calls?: Array<{ extra_content?: unknown }> }>;
}

/**
 * A model that calls a tool. It then answers only if it gets back the fields that it attached to its answer and to the
 * call.
 */
function strict(): Answer {
  return (response, received) => {
    const { messages } = received.json as Body;
    const answer = messages.findLast(({ role }) => role === "assistant");
    if (messages.at(-1)?.role !== "tool") return ASKS(response, received);
    const isSigned = JSON.stringify(answer?.tool_calls?.[0]?.extra_content) === JSON.stringify(extra_content);
    const isWhole = isSigned && answer?.reasoning_content === THOUGHT;
    const refusal = json(400, { error: { code: 400, message: "Function call is missing something.", status: "BAD" } });
    return (isWhole ? events(stream("Tea is bought.")) : refusal)(response, received);
  };
}

function toBuy(run: () => Promise<string>, how: Partial<Tool> = {}): Tool {
  const schema = z.object({ note: z.string() });
  const texts = { name: "shop__buy", description: "Buys.", describeCall: () => "buying" };
  return { ...defineTool({ ...texts, schema, timeoutMs: 60_000, run }), ...how };
}

async function start(how: Partial<Tool> = {}) {
  const [{ url, received }, platform] = [
    await startFaultServer(strict()),
    fakePlatform({ traits: { secondThoughts: true } }),
  ];
  const database = new DatabaseSync(":memory:");
  const open = (run: () => Promise<string>) =>
    startEngine({ gateway: connect(url), database, platform, model: "m", outsideTools: () => [toBuy(run, how)] });
  return { open, platform, received };
}

const bought = () => Promise.resolve("bought");

describe("the fields that a gateway attached to an answer and to its calls", () => {
  test("the next request of the turn returns attached fields, which reach no history, export or button", async () => {
    const { open, platform, received } = await start();
    const engine = open(bought);
    const question = await engine.handle(message("buy tea"));
    expect(platform.texts()).toEqual(["Buying.\n\nTea is bought."]);
    expect(received).toHaveLength(2);

    await engine.accept(action("explain", toTurnId(question.key)));
    await engine.handle(command("export"));
    const { entries } = await engine.history.read("test:a", { maxEntries: 9 });
    const shown = platform.channel.map(({ draft, files }) => [
      draft.markdown,
      ...files.map(({ bytes }) => String(bytes)),
    ]);
    for (const kept of [JSON.stringify(entries), JSON.stringify(shown)]) {
      expect(kept).toContain("shop__buy");
      expect(kept).not.toContain(SIGNATURE);
      expect(kept).not.toContain(THOUGHT);
    }
  });

  test.skipIf(isOnRedis)(
    "the next request returns attached fields even if the process died between the call and its result",
    async () => {
      const { open, platform } = await start();
      const running = Promise.withResolvers<void>();
      const first = open(() => {
        running.resolve();
        return new Promise(() => {});
      });
      await first.accept(message("buy tea"));
      await running.promise;
      // The process "dies" here: the test does not close anything of `first`, and its tool never returns.
      await open(bought).idle();
      expect(platform.texts()).toEqual(["Buying.\n\nTea is bought."]);
    },
  );

  test("the next request returns attached fields after the turn waited for an approval", async () => {
    const { open, platform } = await start({ acts: true, approval: { server: "shop" } });
    const engine = open(bought);
    await engine.handle(message("buy tea"));
    const [asked] = platform.channel;
    expect(asked?.draft.markdown).toContain("**May I use `shop__buy`**");
    await engine.handle(action("approve", asked?.draft.buttons[0]?.turnId ?? ""));
    expect(platform.texts()[0]).toMatch(/Tea is bought\.$/);
  });
});
