import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { makeDataDir, runService, startService } from "../../lab/support/service.ts";

/** The last line of the log when the start failed. */
async function failToStart(env: Record<string, string>): Promise<string> {
  const folder = await makeDataDir();
  onTestFinished(folder.remove);
  const { code, output } = await runService({ DATA_DIR: folder.path, ...env });
  expect(code).toBe(1);
  const lines = output.trim().split("\n");
  const last = JSON.parse(lines.at(-1) ?? "{}") as { level: string; msg: string };
  expect(last.level, output).toBe("fatal");
  // If the log were written in the background, its first line would appear last.
  expect(lines[0]).toContain("Gateway: ");
  return last.msg;
}

test("the service starts without its gateways, and the log and /readyz name them", async () => {
  const folder = await makeDataDir();
  onTestFinished(folder.remove);
  const gateway = {
    GATEWAY_BASE_URL: "http://127.0.0.1:1",
    GATEWAY_API_KEY: "none",
    GATEWAY_FALLBACK_BASE_URL: "http://127.0.0.1:1",
    GATEWAY_FALLBACK_API_KEY: "none",
    CHAT_MODEL: "any",
  };
  const service = await startService(folder.path, gateway);
  onTestFinished(async () => void (await service.end("SIGKILL")));
  const readStates = async () => {
    const answer = await fetch(`${service.url}/readyz`);
    expect(answer.status).toBe(200);
    const { gateway, secondGateway } = (await answer.json()) as Record<string, unknown>;
    return [gateway, secondGateway];
  };
  while ((await readStates()).includes("not known yet")) await sleep(50);
  expect(await readStates()).toEqual(["unreachable", "unreachable"]);
  for (const variable of ["GATEWAY_BASE_URL", "GATEWAY_FALLBACK_BASE_URL"]) {
    expect(service.lines.filter((line) => line.includes(`Check ${variable}`))).toHaveLength(1);
  }
});

test.each([
  ["names its address, if the page is there", "auto", (url: string) => `Palaver is ready at ${url}`, "<title>Palaver"],
  ["names no address, if the page is off", "off", () => "Palaver is ready", "LOCAL_CHAT=on"],
])("the last line of a start %s, and its address shows what runs", async (_, LOCAL_CHAT, line, shown) => {
  const folder = await makeDataDir();
  onTestFinished(folder.remove);
  const service = await startService(folder.path, { LOCAL_CHAT });
  onTestFinished(async () => void (await service.end("SIGKILL")));
  const messages = service.lines.map((text) => (JSON.parse(text) as { msg: string }).msg);
  expect(messages.at(-1)).toBe(line(service.url));
  // Each part has one line.
  const parts = messages.slice(0, -1).map((message) => message.split(":")[0]);
  expect(parts).toEqual(["Gateway", "Images", "Slack", "Discord", "Local page", "Dashboard", "Storage"]);
  expect(await (await fetch(service.url)).text()).toContain(shown);
});

describe("a start that fails says in one sentence what to do", () => {
  test("a start fails with one sentence if the data folder cannot be created", async () => {
    expect(await failToStart({ DATA_DIR: "/proc/palaver" })).toMatch(
      /cannot be created.*Set DATA_DIR to a writable folder/,
    );
  });

  test("a start fails with one sentence if Redis is unreachable", async () => {
    const msg = await failToStart({ REDIS_URL: "redis://:canary@127.0.0.1:1" });
    expect(msg).toMatch(/^Redis at 127\.0\.0\.1:1 did not answer.*ECONNREFUSED.*Check.*REDIS_URL is right\.$/);
    expect(msg).not.toContain("canary");
  });
});
