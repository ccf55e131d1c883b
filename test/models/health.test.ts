import { describe, expect, onTestFinished, test, vi } from "vitest";
import { recordingLog } from "../../lab/support/log.ts";
import type { Gateway } from "../../src/gateway/client.ts";
import { GatewayError } from "../../src/gateway/errors.ts";
import { type GatewayHealthOptions, type GatewayProblem, watchGateway } from "../../src/models/health.ts";
import { start } from "../sandbox/sandbox.ts";
import { startFaultServer } from "../support/fault-server.ts";
import { connect } from "../support/gateway-client.ts";

/**
 * Checks the gateway as the service does at its start. `until` resolves after the problem has changed this many times.
 */
function watch(
  gateway: Pick<Gateway, "listModels">,
  { models = {}, isSecond = false }: Partial<GatewayHealthOptions> = {},
) {
  const { log, lines } = recordingLog();
  const told: Array<GatewayProblem | undefined> = [];
  const waiters: Array<() => void> = [];
  const health = watchGateway({
    models: { CHAT_MODEL: "sandbox-chat", ...models },
    isSecond,
    list: gateway.listModels,
    baseUrl: "https://gateway.example",
    log,
    onChange(problem) {
      told.push(problem);
      for (const wake of waiters.splice(0)) wake();
    },
  });
  onTestFinished(health.close);
  const until = async (isSo: () => boolean) => {
    while (!isSo()) await new Promise<void>((resolve) => waiters.push(resolve));
  };
  health.begin();
  return { health, told, lines, until };
}

/** A gateway that sends one response per request and repeats the last one forever. */
function listing(...answers: Array<string[] | Error>): { gateway: Gateway; asked(): number } {
  let asked = 0;
  const listModels = async () => {
    const answer = answers[Math.min(asked++, answers.length - 1)] ?? [];
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const gateway = { listModels, streamChat: async () => {}, close: async () => {} } as unknown as Gateway;
  return { gateway, asked: () => asked };
}

describe("the gateway check at the start", () => {
  test("the gateway passes the check if it accepts the key and lists the models", async () => {
    const { url } = await start();
    const { health, told, lines } = watch(connect(url, { apiKey: "sk-sandbox-all" }), {
      models: { IMAGE_MODEL: "sandbox-image" },
    });
    expect(health.state()).toBe("not known yet");
    while (health.state() === "not known yet") await new Promise(setImmediate);
    expect(health.state()).toBe("ok");
    expect([told, lines]).toEqual([[], []]);
  });

  test("the gateway check reports a wrong key with the fix", async () => {
    const { url } = await start();
    const { health, told, lines, until } = watch(connect(url, { apiKey: "sk-wrong" }));
    await until(() => told.length === 1);
    expect(health.state()).toBe("key refused");
    expect(told[0]?.sentence).toContain("Check GATEWAY_API_KEY");
    expect(lines).toMatchObject([{ level: 40, msg: expect.stringContaining("Check GATEWAY_API_KEY") }]);
  });

  test("the gateway check keeps the gateway's own words out of the log", async () => {
    const error = new GatewayError("unauthorized", "The gateway refused the key (401).", {
      quote: " It said: canary.",
    });
    const { told, lines, until } = watch(listing(error).gateway);
    await until(() => told.length === 1);
    expect(told[0]?.sentence).toMatch(/^The gateway refused the key \(401\)\. Check GATEWAY_API_KEY/);
    expect(JSON.stringify(lines)).not.toContain("canary");
  });

  test("the gateway check says that the gateway is unreachable if nothing listens", async () => {
    const { told, until } = watch(connect("http://127.0.0.1:1", { limits: { attempts: 1 } }));
    await until(() => told.length === 1);
    expect(told[0]).toMatchObject({
      state: "unreachable",
      sentence: expect.stringContaining("Check GATEWAY_BASE_URL"),
    });
  });

  test("the gateway check reports an unknown model and suggests similar names", async () => {
    const { url } = await start();
    const gateway = connect(url, { apiKey: "sk-sandbox-all" });
    const models = { CHAT_MODEL: "sandbox-chart", CHAT_FALLBACK_MODEL: "spare", IMAGE_MODEL: "painter" };
    const { told, lines, until } = watch(gateway, { models });
    await until(() => told.length === 1);
    expect(told[0]).toMatchObject({ state: "unknown model", sentence: expect.stringContaining("Did you mean") });
    const warned = lines.filter(({ level }) => level === 40).map(({ msg }) => String(msg));
    expect(warned).toEqual(
      Object.entries(models).map(([variable, model]) =>
        expect.stringMatching(new RegExp(`^${variable} ${model} is not one of the models.*npm run doctor`)),
      ),
    );
  });

  test("the gateway check logs the names in the model list only at the finest level", async () => {
    const { told, lines, until } = watch(listing(["sandbox-chat-canary"]).gateway);
    await until(() => told.length === 1);
    expect(told[0]?.sentence).toContain("Did you mean sandbox-chat-canary?");
    const levels = lines.filter((line) => JSON.stringify(line).includes("canary")).map(({ level }) => level);
    expect(levels).toEqual([20]);
  });

  test("the gateway check reports the second gateway separately, with its own variables", async () => {
    const { url } = await start();
    const { health, lines, until, told } = watch(connect(url, { apiKey: "sk-wrong" }), { isSecond: true });
    await until(() => told.length === 1);
    expect(health.state()).toBe("key refused");
    expect(lines).toMatchObject([
      { level: 40, msg: expect.stringMatching(/^Second gateway: .*Check GATEWAY_FALLBACK_API_KEY/) },
    ]);
  });

  test("the check repeats until the gateway passes, and not afterwards; it reports a lasting problem once", async () => {
    const busy = new GatewayError("unreachable", "The gateway cannot be reached.");
    const { gateway, asked } = listing(busy, busy, busy, ["sandbox-chat"]);
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const { health, told, lines } = watch(gateway);
    await vi.advanceTimersByTimeAsync(600_000);
    expect(told.map((problem) => problem?.state)).toEqual(["unreachable", undefined]);
    expect(lines.filter(({ level }) => level === 40)).toHaveLength(1);
    expect([health.state(), asked()]).toEqual(["ok", 4]);
  });

  for (const [name, status, body] of [
    ["answers 404", 404, ""],
    ["answers with a page", 200, "<html></html>"],
    ["lists nothing", 200, '{"data":[]}'],
  ] as const) {
    test(`the check does not blame a gateway without a model list: it ${name}`, async () => {
      const { url } = await startFaultServer((response) => response.writeHead(status).end(body));
      const { health, told } = watch(connect(url));
      while (health.state() === "not known yet") await new Promise(setImmediate);
      expect([health.state(), told]).toEqual(["ok", []]);
    });
  }

  test("the gateway passes the check when the model answers, whatever its list says", async () => {
    const { gateway } = listing(["another"]);
    const { health, told, until } = watch(gateway);
    await until(() => told.length === 1);
    health.answered("sandbox-chat");
    expect(health.state()).toBe("ok");
    expect(told.at(-1)).toBeUndefined();
  });
});
