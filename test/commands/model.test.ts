import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { createModelCommand } from "../../src/commands/model.ts";
import { GatewayError } from "../../src/gateway/errors.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { isOnRedis } from "../support/bot-store.ts";
import { startEngine } from "../support/engine.ts";
import { action, ada, command, message } from "../support/events.ts";
import { eventually } from "../support/eventually.ts";
import { fakeGateway, type Step } from "../support/fake-gateway.ts";
import { fakePlatform } from "../support/fake-platform.ts";
import { recordingLog } from "../support/log.ts";

const OFFERED = ["fake", "maker/large", "maker/small", "maker/image"];
type Setup = Omit<NonNullable<Parameters<typeof startEngine>[0]>, "gateway"> & { list?: () => Promise<string[]> };

/** An engine whose gateway lists models. */
function start({ list = async () => OFFERED, scripts = [["Hello."]], ...options }: Setup = {}) {
  const { gateway, requests } = fakeGateway(...scripts);
  const engine = startEngine({ ...options, gateway: { ...gateway, listModels: list } });
  const say = async (event: Parameters<typeof engine.accept>[0]) => {
    await engine.accept(event);
    await engine.idle();
    return engine.texts().at(-1);
  };
  const prompts = () => requests.map(({ messages }) => messages[0]?.content);
  const fields = () => requests.map(({ messages: _messages, user: _user, ...rest }) => rest);
  return { ...engine, say, prompts, fields, models: () => requests.map(({ model }) => model) };
}

const HINT =
  "`--temperature`, `--length`, `--format`, `--thinking`, `--context` behind it, each with a value or `default`, say how I answer here.";
const elsewhere = { reply: { platform: "test", channelId: "random" }, conversationId: "test:b" };

describe("the options of /model", () => {
  test.skipIf(isOnRedis)(
    "set how a channel is answered, one by one and together with a model, and last beyond the process",
    async () => {
      const database = new DatabaseSync(":memory:");
      const first = start({ database });
      expect(await first.say(command("model", "--temperature 0,2 --length 500"))).toBe(
        "From the next message on I answer here with `fake`, with temperature 0.2, in at most 500 tokens. `/model default` goes back to all as configured.",
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

  test("are refused with what they may be, all at once, and change nothing", async () => {
    const { say, fields } = start();
    expect(
      await say(
        command("model", "maker/large --temperature 3 --length 0 --format xml --thinking loud --context 101 --top 1"),
      ),
    ).toBe(
      "I changed nothing: `--temperature` is a number from 0 to 2, or `default`; `--length` is a number of tokens from 1 to 1000000, or `default`; `--format` is `text` or `json`, or `default`; `--thinking` is `shown` or `hidden`, or `default`; `--context` is a number of messages from 0 to 100, or `default`; there is no option `--top`, only `--temperature`, `--length`, `--format`, `--thinking`, `--context`.",
    );
    expect(await say(command("model", "--temperature"))).toContain("I changed nothing");
    const member = { author: { ...ada, mayConfigure: false } };
    expect(await say(command("model", "--temperature 1", member))).toContain("Only people who manage this channel");
    await say(message("Hello"));
    expect(fields()).toEqual([{ model: "fake" }]);
  });

  test("tell the model in words as well that it is to answer in JSON, which is shown as code", async () => {
    const { say, prompts, texts, history } = start({ scripts: [['{"a_b":', ' "*c*"}']] });
    await say(command("model", "--format json"));
    await say(message("Hello"));
    expect(texts().at(-1)).toBe('```json\n{"a_b": "*c*"}\n```');
    const { entries } = await history.read("test:a", { maxEntries: 1 });
    expect(entries[0]?.messages).toEqual([{ role: "assistant", content: '{"a_b": "*c*"}' }]);
    expect(prompts()).toEqual(["Be kind.\n\nAnswer with one JSON object and nothing else."]);
  });

  test("show the model's thoughts as a quote before the answer, which the model does not get back", async () => {
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
  test("/model lets the channel be answered by another model, and goes back", async () => {
    const { say, models } = start();
    expect(await say(command("model", "maker/large"))).toContain("with `maker/large`");
    await say(message("Hello"));
    await say(message("Hello", { conversationId: "test:another-thread" }));
    expect(await say(command("model", "default"))).toContain("with `fake`");
    await say(message("Hello"));
    expect(models()).toEqual(["maker/large", "maker/large", "fake"]);
  });

  test("/model changes no other channel", async () => {
    const { say, models } = start();
    await say(command("model", "maker/large"));
    await say(message("Hello", elsewhere));
    await say({ ...command("model", "maker/small"), ...elsewhere });
    await say(message("Hello"));
    await say(message("Hello", elsewhere));
    expect(models()).toEqual(["fake", "maker/large", "maker/small"]);
  });

  test.skipIf(isOnRedis)("/model lasts beyond the process", async () => {
    const database = new DatabaseSync(":memory:");
    await start({ database }).say(command("model", "maker/large"));
    const second = start({ database });
    await second.say(message("Hello"));
    expect(second.models()).toEqual(["maker/large"]);
  });

  test("/model counts for Retry as it stands then", async () => {
    const scripts: Step[][] = [["So", new GatewayError("interrupted", "cut")], ["Hello."]];
    const { say, models } = start({ scripts });
    const question = message("Hello");
    await say(question);
    await say(command("model", "maker/large"));
    await say(action("retry", toTurnId(question.key)));
    expect(models()).toEqual(["fake", "maker/large"]);
  });

  test("/model without a name says which model is in use and which there are", async () => {
    const { say } = start();
    expect(await say(command("model"))).toBe(
      `The model here is \`fake\`. You can choose from \`fake\`, \`maker/large\`, \`maker/small\`: \`/model\` and the name. ${HINT}`,
    );
    await say(command("model", "maker/large"));
    expect(await say(command("model"))).toMatch(
      /^The model here is `maker\/large`, chosen here; `\/model default` goes back to `fake`\./,
    );
  });

  test("/model takes a name without the marks around it", async () => {
    const { say } = start();
    for (const name of ["`maker/large`", `"'maker/large'"`, "<maker/large>"]) {
      expect(await say(command("model", name))).toContain("with `maker/large`");
    }
    expect(await say(command("model", `"'>`))).toMatch(/^The model here is/);
  });

  test("/model with a long run of marks costs no more than its length", { timeout: 20_000 }, async () => {
    const { sink, texts } = fakePlatform();
    const run = createModelCommand({
      settings: { read: async () => ({ isKnown: true }), setModel: async () => true, setOptions: async () => true },
      listModels: async () => [],
      models: { isOffered: () => true, usual: () => "fake" },
      access: { findRefusal: async () => "No." },
      audit: { note: async () => true },
    }).run;
    await run(command("model", `a${">".repeat(150_000)}b`), sink, new AbortController().signal);
    expect(texts()).toEqual(["No."]);
  });

  test("/model names as many of very many models as one message holds", async () => {
    const many = Array.from({ length: 1_000 }, (_, index) => `maker/model-${index}`);
    const { say, violations } = start({ list: async () => many });
    expect(await say(command("model"))).toMatch(/and \d{3} more/);
    expect(violations).toEqual([]);
    expect(await say(command("model", "maker/model-999"))).toContain("with `maker/model-999`");
  });

  test("/model refuses an unknown model with the nearest name, and changes nothing", async () => {
    const { say, models } = start();
    expect(await say(command("model", "maker/lagre"))).toBe(
      "The AI service has no model `maker/lagre` for conversations: did you mean `maker/large`?",
    );
    expect(await say(command("model", "zzz`\n\u202Ezzz"))).toBe(
      "The AI service has no model `zzz' zzz` for conversations; `/model` lists those there are.",
    );
    expect(await say(command("model", "maker/image"))).toContain("no model `maker/image` for conversations");
    await say(message("Hello"));
    expect(models()).toEqual(["fake"]);
  });

  test("/model takes a name in other letters, and with the marks it was copied with", async () => {
    const { say, models } = start();
    await say(command("model", " `Maker/LARGE` "));
    await say(message("Hello"));
    expect(models()).toEqual(["maker/large"]);
  });

  test("/model reports a gateway that does not list its models, and still resets", async () => {
    const { say } = start({ list: () => Promise.reject(new GatewayError("unreachable", "sk-secret refused")) });
    expect(await say(command("model"))).toBe(
      `The model here is \`fake\`. I could not get a list of models from the AI service. ${HINT}`,
    );
    expect(await say(command("model", "maker/large"))).toContain("I changed nothing");
    expect(await say(command("model", "default"))).toContain("with `fake`");
  });

  test("/model is for those who manage the channel, where the platform tells who does", async () => {
    const { say, models } = start();
    const member = { author: { ...ada, mayConfigure: false } };
    const manager = { author: { ...ada, mayConfigure: true } };
    expect(await say(command("model", "maker/large", member))).toContain("Only people who manage this channel");
    expect(await say(command("model", "default", member))).toContain("Only people who manage this channel");
    expect(await say(command("model", "", member))).toContain("The model here is `fake`");
    await say(message("Hello"));
    await say(command("model", "maker/large", manager));
    await say(message("Hello"));
    expect(models()).toEqual(["fake", "maker/large"]);
  });

  test("a chosen model that the gateway has no more is named with the way back", async () => {
    const gone = new GatewayError("rejected", "gone", { status: 404, reason: "unknown-model" });
    const { say } = start({ scripts: [[gone]] });
    expect(await say(message("Hello"))).not.toContain("/model default");
    await say(command("model", "maker/large"));
    expect(await say(message("Hello"))).toMatch(/no model `maker\/large`[^]*`\/model default` goes back/);
  });

  test("/model stands in the list of commands, as /persona does", async () => {
    const { say } = start();
    expect(await say(command("help"))).toMatch(/`\/model`[^]*`\/persona`/);
  });

  test("the log of a turn names the model that /model chose", async () => {
    const { log, lines } = recordingLog();
    const { say } = start({ log });
    await say(command("model", "maker/large"));
    await say(message("Hello"));
    expect(lines.find(({ msg }) => msg === "turn ended")).toMatchObject({ model: "maker/large" });
  });

  test.skipIf(isOnRedis)("the configured model and persona answer while the store is out of reach", async () => {
    const database = new DatabaseSync(":memory:");
    const { say, models, prompts } = start({ database });
    await say(command("model", "maker/large"));
    await say(command("persona", "a pirate"));
    database.exec("ALTER TABLE keyv RENAME TO away");
    const answer = say(message("Hello"));
    await eventually(models).toHaveLength(1);
    // Asked already, it may come back: the answer would wait for its place in the history.
    database.exec("ALTER TABLE away RENAME TO keyv");
    expect(await answer).toContain("Hello.");
    await say(message("Hello"));
    expect(models()).toEqual(["fake", "maker/large"]);
    expect(prompts()).toEqual(["Be kind.", "a pirate"]);
  });

  test.skipIf(isOnRedis)("/model says what it cannot do while the store is out of reach", async () => {
    const database = new DatabaseSync(":memory:");
    const { say } = start({ database });
    database.exec("ALTER TABLE keyv RENAME TO away");
    expect(await say(command("model"))).toContain("out of reach");
    expect(await say(command("model", "maker/small"))).toContain("could not keep that");
  });
});
