import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { startBot } from "../../lab/gateway/bot.ts";
import { measure, type Row } from "../../lab/gateway/contract.ts";
import { isRecord } from "../../lab/gateway/dialect.ts";
import { DIALECT_NAMES, type DialectName } from "../../lab/gateway/dialects/index.ts";
import { withTables } from "../../lab/gateway/matrix.ts";
import { type Seen, startDialect } from "../../lab/gateway/server.ts";
import type { TraitName } from "../../lab/gateway/traits.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { recordingLog, silent } from "../../lab/support/log.ts";
import { ROOT } from "../../lab/support/service.ts";

/** Starts the bot with a gateway that has these traits, sends one message and returns what the user sees. */
async function ask(text: string, traits: TraitName[], dialect: DialectName = "llama-cpp") {
  const gateway = await startDialect({ dialect, traits });
  const bot = await startBot(gateway, silent);
  onTestFinished(async () => {
    await bot.close();
    await gateway.close();
  });
  await bot.open("trait").say(text);
  return {
    text: bot.shown.map(({ draft }) => draft.markdown).join("\n\n"),
    files: bot.shown.flatMap(({ files }) => files),
    hasRetry: bot.shown.some(({ draft }) => draft.buttons.some(({ label }) => label === "Retry")),
    requests: gateway.requests,
  };
}

describe("the bot with a vendor's dialect", () => {
  const measured = new Map<
    DialectName,
    { row: Row; requests: readonly Seen[]; lines: Array<Record<string, unknown>> }
  >();

  beforeAll(async () => {
    await Promise.all(
      DIALECT_NAMES.map(async (name) => {
        const { log, lines } = recordingLog();
        log.level = "info";
        measured.set(name, { ...(await measure(name, log)), lines });
      }),
    );
  });

  test.each(DIALECT_NAMES)("the bot answers every conversation with %s or explains why it cannot", (name) => {
    const failed = [...(measured.get(name)?.row ?? [])].filter(([, cell]) => cell.kind === "failed");
    expect(Object.fromEntries(failed)).toEqual({});
  });

  test.each(DIALECT_NAMES)("the bot logs the status of every refusal by %s at info, without any user text", (name) => {
    const { requests = [], lines = [] } = measured.get(name) ?? {};
    const log = lines.map((line) => JSON.stringify(line)).join("\n");
    const refused = requests.flatMap(({ chat, refusal }) => (chat && refusal ? [refusal.status] : []));
    const statuses = new Set(refused.filter((status) => status >= 400));
    expect([...statuses].filter((status) => !log.includes(String(status)))).toEqual([]);
    expect(log).not.toMatch(/kettle|Lunch is at noon|The door is green/);
  });

  test.each(DIALECT_NAMES)("the bot counts the tokens that %s reports", (name) => {
    const { requests = [], lines = [] } = measured.get(name) ?? {};
    const counted = lines.flatMap(({ msg, usage }) => (msg === "answer complete" && isRecord(usage) ? [usage] : []));
    const reported = requests.flatMap(({ answer }) => (answer ? [answer.usage.total_tokens] : []));
    expect(counted.filter((usage) => !reported.some((total) => total === usage["total_tokens"]))).toEqual([]);
    // The bot estimates the tokens of some answers until it knows which options the gateway accepts.
    expect(counted.length).toBeGreaterThan(reported.length / 2);
  });

  test("every conversation has the outcome that docs/gateway.md shows", async () => {
    const rows = new Map(DIALECT_NAMES.map((name) => [name, measured.get(name)?.row ?? new Map()]));
    const page = await readFile(join(ROOT, "docs/gateway.md"), "utf8");
    expect(page).toBe(withTables(page, rows));
  });
});

describe("the bot with an unusual gateway", () => {
  test("the bot shows the whole answer if the gateway sends finish_reason in every chunk and pauses", async () => {
    const { text } = await ask("say: One, two, three, four, five, six, seven.", ["finish-in-every-chunk"]);
    expect(text).toBe("One, two, three, four, five, six, seven.");
  });

  test.each(["insufficient_system_resource", "abort", "network_error"] as const)(
    "the bot says that the answer broke off and offers Retry if it ends with the finish_reason %s",
    async (reason) => {
      const { text, hasRetry } = await ask("count to 50", [`finish-${reason}`]);
      expect(text).toMatch(/^1\n2\n[^]*broke off/);
      expect(hasRetry).toBe(true);
    },
  );

  test.each(["picture-in-text", "picture-beside-text"] as const)(
    "the bot posts an image that arrives as %s and shows no base64",
    async (trait) => {
      const { text, files } = await ask("say: Look.", [trait]);
      expect(text).toContain("Look.");
      expect(text).not.toContain("base64");
      expect(text).not.toContain("iVBOR");
      expect(files.map(({ contentType }) => contentType)).toEqual(["image/png"]);
    },
  );

  test("the bot shows the answer once if the gateway repeats all previous text in every chunk", async () => {
    expect((await ask("count to 30", ["cumulative-text"])).text).toMatch(/^1\n2\n3\n[^]*\n30$/);
    const numbers = (await ask("count to 30", ["cumulative-text"])).text.split("\n");
    expect(numbers).toHaveLength(30);
  });

  test.each([
    "thinks-in-summaries",
    "thinks-in-secret",
    "thinks-in-parts",
    "thinks-in-think-tags",
    "thinks-in-thinking-tags",
    "thinks-in-reasoning-tags",
  ] as const)("the bot separates the reasoning from the answer of a model with the quirk %s", async (trait) => {
    const gateway = await startDialect({ dialect: "llama-cpp", traits: [trait] });
    const bot = await startBot(gateway, silent);
    onTestFinished(async () => {
      await bot.close();
      await gateway.close();
    });
    const talk = bot.open("reasoning");
    await talk.say("say: Hello.");
    expect(bot.shown.at(-1)?.draft.markdown).toBe("Hello.");
    await talk.set("--thinking shown");
    await talk.say("say: Hello again.");
    const shown = /^> \*\*Thought for [^]*what the words want of me[^]*\n\nHello again\.$/;
    expect(bot.shown.at(-1)?.draft.markdown).toMatch(trait === "thinks-in-secret" ? /^Hello again\.$/ : shown);
  });

  test.each(["nested-arguments-as-text", "null-arguments", "stray-braces", "harmony-tool-names"] as const)(
    "the bot runs a tool whose call has the quirk %s",
    async (trait) => {
      const { text, requests } = await ask("use plan_trip", [trait]);
      expect(text).toContain("The trip goes from ");
      expect(requests.filter(({ refusal }) => refusal !== undefined)).toEqual([]);
    },
  );

  test("the bot asks once and names the cause if a 429 means that the account has no credit", async () => {
    const { text, requests } = await ask("say: Hello.", ["quota-429"]);
    expect(text).toMatch(/credit/i);
    expect(requests).toHaveLength(1);
  });

  test("the bot asks once and names the time if a 429 has its delay in the body only", async () => {
    const { text, requests } = await ask("say: Hello.", ["wait-in-body"]);
    expect(text).toMatch(/ at about \d\d:\d\d UTC\b/);
    expect(requests).toHaveLength(1);
  });

  test("the bot names the content filter if the gateway filters the question", async () => {
    expect((await ask("say: Hello.", ["content-filter"])).text).toMatch(/content filter/i);
  });

  test.each(["gemini", "vertex", "deepseek", "kimi", "openrouter", "litellm-anthropic"] as const)(
    "the bot returns the fields that %s attaches to tool calls, even if another process continues after an approval",
    async (dialect) => {
      const gateway = await startDialect({ dialect });
      const [database, platform] = [new DatabaseSync(":memory:"), fakePlatform({ maxLength: 8_000 })];
      const [first, second] = [
        await startBot(gateway, silent, { database, platform }),
        await startBot(gateway, silent, { database, platform }),
      ];
      onTestFinished(async () => {
        await Promise.all([first.close(), second.close()]);
        await gateway.close();
      });
      await first.open("approval").say("use order_tea");
      await second.open("approval").press("approve");
      expect(second.shown[0]?.draft.markdown).toContain("The tea is ordered.");
    },
  );
});
