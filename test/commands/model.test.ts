import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { isOnRedis } from "../../lab/support/bot-store.ts";
import { startEngine } from "../../lab/support/engine.ts";
import { action, ada, command, message } from "../../lab/support/events.ts";
import { fakeGateway, type Step } from "../../lab/support/fake-gateway.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { recordingLog } from "../../lab/support/log.ts";
import { fakeServices } from "../../lab/support/services.ts";
import type { CommandDeps } from "../../src/commands/command.ts";
import { MODEL } from "../../src/commands/model.ts";
import { GatewayError } from "../../src/gateway/errors.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { eventually } from "../support/eventually.ts";

const OFFERED = ["fake", "maker/large", "maker/small", "maker/image"];
type Setup = Omit<NonNullable<Parameters<typeof startEngine>[0]>, "gateway"> & { list?: () => Promise<string[]> };

function start({ list = async () => OFFERED, scripts = [["Hello."]], ...options }: Setup = {}) {
  const { gateway, requests } = fakeGateway(...scripts);
  const engine = startEngine({ ...options, gateway: { ...gateway, listModels: list } });
  const say = async (event: Parameters<typeof engine.accept>[0]) => {
    await engine.handle(event);
    return engine.texts().at(-1);
  };
  const prompts = () => requests.map(({ messages }) => messages[0]?.content);
  const fields = () => requests.map(({ messages: _messages, user: _user, tools: _tools, ...rest }) => rest);
  return { ...engine, say, prompts, fields, models: () => requests.map(({ model }) => model) };
}

const HINT =
  "To change how I answer here, add `--temperature`, `--length`, `--format`, `--thinking`, `--web`, `--context`, each with a value or `default`.";
const elsewhere = { reply: { platform: "test", channelId: "random" }, conversationId: "test:b" };

describe("the options of /model", () => {
  test.skipIf(isOnRedis)(
    "/model sets the options of a channel's answers, alone or with a model, and keeps them after a restart",
    async () => {
      const database = new DatabaseSync(":memory:");
      const first = start({ database });
      expect(await first.say(command("model", "--temperature 0,2 --length 500"))).toBe(
        "From the next message on, I'll answer here with `fake`, with temperature 0.2, in at most 500 tokens. `/model default` goes back to the configuration.",
      );
      expect(await first.say(command("model", "maker/large —format json --length default"))).toContain(
        "with `maker/large`, with temperature 0.2, as JSON.",
      );
      const { say, fields } = start({ database });
      await say(message("Hello"));
      await say(message("Hello", elsewhere));
      expect(fields()).toEqual([
        { model: "maker/large", temperature: 0.2, response_format: { type: "json_object" } },
        { model: "fake" },
      ]);
      expect(await say(command("model"))).toContain("It answers with temperature 0.2, as JSON.");
      expect(await say(command("model", "default"))).toContain("with `fake`, as configured");
      await say(message("Hello"));
      expect(fields().at(-1)).toEqual({ model: "fake" });
    },
  );

  test("/model rejects invalid options, names all the allowed values, and changes nothing", async () => {
    const { say, fields } = start();
    expect(
      await say(
        command(
          "model",
          "maker/large --temperature 3 --length 0 --format xml --thinking loud --web all --context 101 --top 1",
        ),
      ),
    ).toBe(
      "I changed nothing: `--temperature` must be a number from 0 to 2, or `default`; `--length` must be a number of tokens from 1 to 1000000, or `default`; `--format` must be `text` or `json`, or `default`; `--thinking` must be `shown` or `hidden`, or `default`; `--web` must be `low`, `medium`, `high` or `off`, or `default`; `--context` must be a number of messages from 0 to 100, or `default`; there is no option `--top`, only `--temperature`, `--length`, `--format`, `--thinking`, `--web`, `--context`.",
    );
    expect(await say(command("model", "--temperature"))).toContain("I changed nothing");
    const member = { author: { ...ada, mayConfigure: false } };
    expect(await say(command("model", "--temperature 1", member))).toContain("Only this channel's managers");
    await say(message("Hello"));
    expect(fields()).toEqual([{ model: "fake" }]);
  });

  test("with --format json, the system prompt asks for JSON too, and the answer is shown as code", async () => {
    const { say, prompts, texts, history } = start({ scripts: [['{"a_b":', ' "*c*"}']] });
    await say(command("model", "--format json"));
    await say(message("Hello"));
    expect(texts().at(-1)).toBe('```json\n{"a_b": "*c*"}\n```');
    const { entries } = await history.read("test:a", { maxEntries: 1 });
    expect(entries[0]?.messages).toEqual([{ role: "assistant", content: '{"a_b": "*c*"}' }]);
    expect(prompts()).toEqual(["Be kind.\n\nAnswer with one JSON object and nothing else."]);
  });

  test("with --thinking shown, the thinking is quoted before the answer, and the model does not get it back", async () => {
    const { say, channel, history } = start({ scripts: [[{ reasoning: "A greeting.\nI greet back." }, "Hel", "lo."]] });
    await say(command("model", "--thinking shown"));
    await say(message("Hi"));
    expect(channel.at(-1)?.draft.markdown).toMatch(
      /^> \*\*Thought for \d+ s\*\*\n> A greeting\.\n> I greet back\.\n\nHello\.$/,
    );
    expect(JSON.stringify(await history.read("test:a", { maxEntries: 9 }))).not.toContain("greet back");
  });
});

describe("/model", () => {
  test("/model switches the channel to another model and back", async () => {
    const { say, models } = start();
    expect(await say(command("model", "maker/large"))).toContain("with `maker/large`");
    await say(message("Hello"));
    await say(message("Hello", { conversationId: "test:another-thread" }));
    expect(await say(command("model", "default"))).toContain("with `fake`");
    await say(message("Hello"));
    expect(models()).toEqual(["maker/large", "maker/large", "fake"]);
  });

  test("Retry uses the model that /model has set meanwhile", async () => {
    const scripts: Step[][] = [["So", new GatewayError("interrupted", "cut")], ["Hello."]];
    const { say, models } = start({ scripts });
    const question = message("Hello");
    await say(question);
    await say(command("model", "maker/large"));
    await say(action("retry", toTurnId(question.key)));
    expect(models()).toEqual(["fake", "maker/large"]);
  });

  test("/model without a name shows the current model and the available ones", async () => {
    const { say } = start();
    expect(await say(command("model"))).toBe(
      `The model here is \`fake\`. You can choose from \`fake\`, \`maker/large\`, \`maker/small\`. To choose one, write \`/model\` and its name. ${HINT}`,
    );
    await say(command("model", "maker/large"));
    expect(await say(command("model"))).toMatch(
      /^The model here is `maker\/large`, chosen here; `\/model default` goes back to `fake`\./,
    );
  });

  test("/model accepts a name in other case, and with quotation marks around it", async () => {
    const { say } = start();
    for (const name of [" `Maker/LARGE` ", `"'maker/large'"`, "<maker/large>"]) {
      expect(await say(command("model", name))).toContain("with `maker/large`");
    }
    expect(await say(command("model", `"'>`))).toMatch(/^The model here is/);
  });

  test("/model with a long run of quotation marks takes linear time", { timeout: 20_000 }, async () => {
    const { sink, texts } = fakePlatform();
    const access = { findRefusal: async () => "No." };
    const run = MODEL.create?.(
      fakeServices<CommandDeps>({ settings: {}, modelLists: {}, models: {}, access, audit: {} }),
    );
    await run?.(command("model", `a${">".repeat(150_000)}b`), sink, new AbortController().signal);
    expect(texts()).toEqual(["No."]);
  });

  test("/model truncates a long list of models to one message", async () => {
    const many = Array.from({ length: 1_000 }, (_, index) => `maker/model-${index}`);
    const { say, violations } = start({ list: async () => many });
    expect(await say(command("model"))).toMatch(/and \d{3} more/);
    expect(violations).toEqual([]);
    expect(await say(command("model", "maker/model-999"))).toContain("with `maker/model-999`");
  });

  test("/model refuses an unknown model, suggests the nearest name, and changes nothing", async () => {
    const { say, models } = start();
    expect(await say(command("model", "maker/lagre"))).toBe(
      "The AI service has no chat model `maker/lagre`. Did you mean `maker/large`?",
    );
    expect(await say(command("model", "zzz`\n\u202Ezzz"))).toBe(
      "The AI service has no chat model `zzz' zzz`. `/model` lists them all.",
    );
    expect(await say(command("model", "maker/image"))).toContain("no chat model `maker/image`");
    await say(message("Hello"));
    expect(models()).toEqual(["fake"]);
  });

  test("/model reports a gateway that does not list its models, and still resets", async () => {
    const { say } = start({ list: () => Promise.reject(new GatewayError("unreachable", "sk-secret refused")) });
    expect(await say(command("model"))).toBe(
      `The model here is \`fake\`. I couldn't get the list of models from the AI service. ${HINT}`,
    );
    expect(await say(command("model", "maker/large"))).toContain("I changed nothing");
    expect(await say(command("model", "default"))).toContain("with `fake`");
  });

  test("/model lets only the channel's managers change it, if the platform knows them", async () => {
    const { say, models } = start();
    const member = { author: { ...ada, mayConfigure: false } };
    const manager = { author: { ...ada, mayConfigure: true } };
    expect(await say(command("model", "maker/large", member))).toContain("Only this channel's managers");
    expect(await say(command("model", "default", member))).toContain("Only this channel's managers");
    expect(await say(command("model", "", member))).toContain("The model here is `fake`");
    await say(message("Hello"));
    await say(command("model", "maker/large", manager));
    await say(message("Hello"));
    expect(models()).toEqual(["fake", "maker/large"]);
  });

  test("the error names a model that the gateway no longer has, and explains how to reset it", async () => {
    const gone = new GatewayError("rejected", "gone", { status: 404, reason: "unknown-model" });
    const { say } = start({ scripts: [[gone]] });
    expect(await say(message("Hello"))).not.toContain("/model default");
    await say(command("model", "maker/large"));
    expect(await say(message("Hello"))).toMatch(/no model `maker\/large`[^]*`\/model default` goes back/);
  });

  test("the log of a turn names the model that /model chose", async () => {
    const { log, lines } = recordingLog();
    const { say } = start({ log });
    await say(command("model", "maker/large"));
    await say(message("Hello"));
    expect(lines.find(({ msg }) => msg === "turn ended")).toMatchObject({ model: "maker/large" });
  });

  test.skipIf(isOnRedis)("the configured model and persona answer while the store is unavailable", async () => {
    const database = new DatabaseSync(":memory:");
    const { say, models, prompts } = start({ database });
    await say(command("model", "maker/large"));
    await say(command("persona", "a pirate"));
    database.exec("ALTER TABLE keyv RENAME TO away");
    const answer = say(message("Hello"));
    await eventually(models).toHaveLength(1);
    // The model has answered. To be stored in the history, the answer now needs the table.
    database.exec("ALTER TABLE away RENAME TO keyv");
    expect(await answer).toContain("Hello.");
    await say(message("Hello"));
    expect(models()).toEqual(["fake", "maker/large"]);
    expect(prompts()).toEqual(["Be kind.", "a pirate"]);
  });

  test.skipIf(isOnRedis)(
    "/model says that it can't save or look up anything while the store is unavailable",
    async () => {
      const database = new DatabaseSync(":memory:");
      const { say } = start({ database });
      database.exec("ALTER TABLE keyv RENAME TO away");
      expect(await say(command("model"))).toContain("storage is unavailable");
      expect(await say(command("model", "maker/small"))).toContain("couldn't save that");
    },
  );
});
