import { readFile, rm } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { dirname, join } from "node:path";
import { PassThrough, Writable } from "node:stream";
import { parseEnv } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { makeDataDir } from "../../lab/support/service.ts";
import { createSetup } from "../../src/setup/setup.ts";
import { runSetup } from "../../src/setup/terminal.ts";
import { start as startSandbox } from "../sandbox/sandbox.ts";
import { modules } from "../support/config.ts";
import { startDiscord } from "../support/discord.ts";
import { eventually } from "../support/eventually.ts";
import { serveAnswers } from "../support/file-server.ts";
import { startSlack } from "../support/slack.ts";

const DOWN = "\u001b[B";
const ENTER = "\r";

/** A terminal whose output tests read in order, from the start. */
function openTerminal() {
  const input = new PassThrough();
  let shown = "";
  const output = new Writable({
    write(chunk, _, done) {
      shown += String(chunk);
      done();
    },
  });
  return {
    input,
    output,
    async answer(words: string, ...keys: string[]) {
      await eventually(async () => shown).toContain(words);
      shown = shown.slice(shown.indexOf(words) + words.length);
      for (const key of keys) input.write(key);
    },
    shown: () => shown,
  };
}

async function open(env: Record<string, string>) {
  const { path: folder, remove } = await makeDataDir();
  onTestFinished(remove);
  const terminal = openTerminal();
  const { input, output } = terminal;
  const running = runSetup({ setup: createSetup({ env, folder, modules }), input, output });
  return { ...terminal, running, file: () => readFile(join(folder, ".env"), "utf8") };
}

describe("npm run setup", () => {
  test("npm run setup asks for the address again, and keeps the choice, if the gateway is unreachable", async () => {
    const gateway = await startSandbox();
    const { answer, running, file, shown } = await open({});
    await answer("What next?", DOWN, DOWN, ENTER);
    await answer("Ollama", ...Array<string>(5).fill(DOWN), ENTER);
    await answer("Address", "http://127.0.0.1:1", ENTER);
    await answer("Key", "key-of-the-first", ENTER);
    await answer("cannot be reached");
    await answer("Try again?", ENTER);
    await answer("Address", "\u0015", gateway.url, ENTER);
    // The setup refuses an empty key, because it dropped the first key together with the first URL.
    await answer("Key", ENTER);
    await answer("This field is required.", "sk-sandbox-all", ENTER);
    await answer("Model that answers", ENTER);
    await answer("Model that creates images", ENTER);
    await answer("It works.");
    await answer("What next?", ENTER);
    await answer("Write them to", ENTER);
    expect(await running).toBe(true);
    expect(parseEnv(await file())).toMatchObject({ GATEWAY_API_KEY: "sk-sandbox-all" });
    expect(shown()).not.toContain("OpenRouter");
  });

  test("npm run setup uses the only model that a gateway lists, and keeps a key that is not typed again", async () => {
    const list = (response: ServerResponse) => response.end('{"data":[{"id":"the-one"}]}');
    const { origin } = await serveAnswers({ "/v1/models": list });
    const { answer, input, running, shown } = await open({});
    await answer("What next?", DOWN, DOWN, ENTER);
    await answer("Ollama", ...Array<string>(5).fill(DOWN), ENTER);
    await answer("Address", origin, ENTER);
    await answer("Key", "sk-secret", ENTER);
    await answer("Model that answers: the-one");
    await answer("Model that creates images", ENTER);
    await answer("Try again?", ENTER);
    await answer("Address", ENTER);
    await answer("Enter keeps the previous one", ENTER);
    await answer("Model that answers: the-one");
    await answer("Model that creates images", "\u0003");
    expect(await running).toBe(false);
    expect(shown()).not.toContain("sk-secret");
    input.end();
  });

  test("npm run setup prints a short link, and the file to paste", async () => {
    const [plain, other] = [await open({}), await open({ BOT_NAME: "Team Bot" })];
    for (const { answer } of [plain, other]) {
      await answer("What next?", ENTER);
      await answer("Socket Mode", ENTER);
    }
    await plain.answer(`The file: ${join(process.cwd(), "manifest.json")}\n`);
    await plain.answer("Create the Slack app: https://api.slack.com/apps?new_app=1\n");
    await other.answer("The file: ");
    await eventually(async () => other.shown()).toContain("\n");
    const [path = ""] = other.shown().split("\n");
    onTestFinished(() => rm(dirname(path), { recursive: true }));
    expect(await readFile(path, "utf8")).toContain('"display_name": "team-bot"');
    for (const { answer, running } of [plain, other]) {
      await answer("App-level token", "\u0003");
      expect(await running).toBe(false);
    }
  });

  test("npm run setup connects a platform and a gateway, explains a wrong token, and writes the file", async () => {
    const [gateway, slack] = await Promise.all([startSandbox(), startSlack()]);
    const { answer, running, file, shown } = await open({ SLACK_API_URL: slack.apiUrl });
    await answer("What next?", ENTER);
    await answer("Socket Mode", ENTER);
    await answer("App-level token", slack.appToken, ENTER);
    await answer("Bot token", slack.appToken, ENTER);
    await answer("must be a bot token (xoxb-…)");
    await answer("Try again?", ENTER);
    await answer("App-level token", ENTER);
    // The terminal also masks tokens on the second attempt.
    expect(shown()).not.toContain("xapp-1");
    await answer("Bot token", slack.botToken, ENTER);
    await answer("It works.");
    await answer("What next?", DOWN, ENTER);
    await answer("Ollama", ...Array<string>(5).fill(DOWN), ENTER);
    await answer("Address", gateway.url, ENTER);
    await answer("Key", "sk-sandbox-all", ENTER);
    await answer("Model that answers", ENTER);
    await answer("Model that creates images", ENTER);
    await answer("It works.");
    await answer("What next?", ENTER);
    await answer("Write them to", ENTER);
    await answer("In Slack, write in a channel: /invite @palaver, and then: @palaver hello");
    expect(await running).toBe(true);
    expect(parseEnv(await file())).toEqual({
      SLACK_APP_TOKEN: slack.appToken,
      SLACK_BOT_TOKEN: slack.botToken,
      GATEWAY_BASE_URL: gateway.url,
      GATEWAY_API_KEY: "sk-sandbox-all",
      CHAT_MODEL: "sandbox-chat",
    });
  });

  test("npm run setup shows the link that adds the bot to a server, and saves nothing if the person quits", async () => {
    const discord = await startDiscord();
    const { answer, running, shown, file } = await open({ DISCORD_API_URL: discord.apiUrl });
    await answer("What next?", DOWN, ENTER);
    await answer("Bot token", discord.token, ENTER);
    await answer("https://discord.com/oauth2/authorize?client_id=");
    await answer("Try again?", "\u0003");
    expect(await running).toBe(false);
    expect(shown()).toContain("Nothing was saved.");
    await expect(file()).rejects.toThrow(/ENOENT/);
  });
});
