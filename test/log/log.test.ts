import { describe, expect, test } from "vitest";
import { tokenForms } from "../../src/config/summary.ts";
import { createLogger } from "../../src/log/log.ts";
import { LoggableError } from "../../src/port/errors.ts";
import { modules } from "../support/config.ts";

const CANARY = 'canary"\\5e1f0a';
const TOKENS = ["xoxb-canary-5e1f", "xapp-canary-5e1f", "sk-canary-5e1f", `${"M".repeat(24)}.5e1f0a.${"c".repeat(30)}`];

function createRecorder(level = "trace") {
  const lines: string[] = [];
  const log = createLogger({
    level,
    tokens: tokenForms(modules),
    secrets: [CANARY],
    destination: { write: (line) => void lines.push(line) },
  });
  return { log, lines, last: (): unknown => JSON.parse(lines.at(-1) ?? "null") };
}

describe("createLogger", () => {
  test("a logger writes lines of JSON with level, time, fields and message", () => {
    const { log, last } = createRecorder();
    log.child({ platform: "slack" }).warn({ waitMs: 5 }, "waiting for %s", "Slack");
    expect(last()).toEqual({
      level: "warn",
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      platform: "slack",
      waitMs: 5,
      msg: "waiting for Slack",
    });
  });

  test("a logger writes nothing below its level", () => {
    const { log, lines } = createRecorder("info");
    log.debug("no");
    expect(lines).toEqual([]);
  });

  describe("the log of an error", () => {
    const said = Object.assign(new Error("they said: marmalade\n    at marmalade (sky)"), {
      code: "of marmalade skies",
    });
    const own = new LoggableError("It was refused.", { quote: " It said: marmalade", cause: said });

    test.each<[string, (log: ReturnType<typeof createLogger>) => void]>([
      ["an error alone", (log) => log.error(said)],
      ["a field", (log) => log.warn({ err: said })],
      ["a field of any name, with a message", (log) => log.info({ problem: own }, "it")],
      ["something deep", (log) => log.fatal({ nested: [{ cause: new AggregateError([own, "marmalade"]) }] }, "it")],
      ["a cause that is no error", (log) => log.warn({ err: new Error("it", { cause: "marmalade" }) }, "it")],
      ["a child's field", (log) => log.child({ err: said }).warn("it")],
    ])("no quote of an error appears above debug, logged as %s", (_, write) => {
      const { log, lines } = createRecorder("info");
      write(log);
      expect(lines).toHaveLength(1);
      expect(lines.join()).not.toContain("marmalade");
    });

    test("an error's own words appear at every level, and the quotes in a separate line at debug", () => {
      const { log, lines } = createRecorder("debug");
      log.warn({ err: own, turnId: "t" }, "it failed");
      const [told, whole] = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
      expect(told).toMatchObject({ level: "warn", err: { message: "It was refused." }, msg: "it failed" });
      expect(JSON.stringify(told)).not.toContain("marmalade");
      expect(whole).toMatchObject({
        level: "debug",
        turnId: "t",
        err: { message: "It was refused. It said: marmalade", cause: { message: said.message } },
      });
    });

    test("the frames of an error's stack appear at every level, but a line of the message that looks like a frame does not", () => {
      const { log, last } = createRecorder("info");
      log.warn({ err: said });
      expect((last() as { err: { stack: string } }).err.stack).toMatch(/^at .*log\.test\.ts/);
    });
  });

  describe.each([CANARY, ...TOKENS])("the log with the secret %s", (secret) => {
    const error = Object.assign(
      new Error(`bad key ${secret}`, {
        cause: Object.assign(new Error("inner"), { config: { headers: { authorization: `Bearer ${secret}` } } }),
      }),
      { code: secret },
    );

    test.each<[string, (log: ReturnType<typeof createLogger>) => void]>([
      ["message", (log) => log.info(`key ${secret}`)],
      ["message after a line break", (log) => log.info(`key\n${secret}\n`)],
      ["message's parts", (log) => log.info("key %s and %j", secret, { secret })],
      ["field", (log) => log.info({ secret }, "x")],
      ["deep field", (log) => log.info({ a: { b: { c: [{ secret }] } } }, "x")],
      ["name of a field", (log) => log.info({ [`a ${secret}`]: 1 }, "x")],
      ["JSON inside a field", (log) => log.info({ body: JSON.stringify({ secret }) }, "x")],
      ["address inside a field", (log) => log.info({ url: `https://a.example/?x=${encodeURIComponent(secret)}` }, "x")],
      ["error, its stack, its code and its cause", (log) => log.debug(error)],
      ["error in a field", (log) => log.debug({ failure: error }, "x")],
      ["child's field", (log) => log.child({ secret }).info("x")],
      ["error of a child", (log) => log.child({ err: error, other: error, secret }).info("x")],
    ])("the log hides the secret in this part of a line: %s", (_, write) => {
      const { log, lines } = createRecorder();
      write(log);
      expect(lines).toHaveLength(1);
      expect(lines.join()).not.toContain("5e1f");
      expect(lines.join()).toContain("[redacted]");
      expect(() => JSON.parse(lines[0] ?? "")).not.toThrow();
    });
  });
});
