import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough, Writable } from "node:stream";
import { parseEnv } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { createSetup } from "../../src/setup/setup.ts";
import { runSetup } from "../../src/setup/terminal.ts";
import { start as startSandbox } from "../sandbox/sandbox.ts";
import { startDiscord } from "../simulators/discord/index.ts";
import { startSlack } from "../simulators/slack/slack.ts";
import { eventually } from "../support/eventually.ts";
import { makeDataDir } from "../support/service.ts";

const DOWN = "\u001b[B";
const ENTER = "\r";

/** A terminal that is read from its beginning, words after words. */
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
    /** Waits for words, then types. */
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
  const running = runSetup({ setup: createSetup({ env, folder }), input, output });
  return { ...terminal, running, file: () => readFile(join(folder, ".env"), "utf8") };
}

describe("npm run setup", () => {
  test("asks for the key again when the address of the gateway has changed", async () => {
    const gateway = await startSandbox();
    const { answer, running, file } = await open({});
    await answer("What is next?", DOWN, DOWN, ENTER);
    await answer("Ollama", ...Array<string>(5).fill(DOWN), ENTER);
    await answer("Address", "http://127.0.0.1:1", ENTER);
    await answer("Key", "key-of-the-first", ENTER);
    await answer("Model that answers", "m", ENTER);
    await answer("Model that draws", ENTER);
    await answer("Try it again?", ENTER);
    await answer("Ollama", ...Array<string>(5).fill(DOWN), ENTER);
    await answer("Address", "\u0015", gateway.url, ENTER);
    // An empty key is refused: the first one is forgotten.
    await answer("Key", ENTER);
    await answer("This is needed.", "sk-sandbox-all", ENTER);
    await answer("Model that answers", ENTER);
    await answer("Model that draws", ENTER);
    await answer("It works.");
    await answer("What is next?", ENTER);
    await answer("Write them to", ENTER);
    expect(await running).toBe(true);
    expect(parseEnv(await file())).toMatchObject({ GATEWAY_API_KEY: "sk-sandbox-all" });
  });

  test("connects a platform and a gateway, tells what is wrong with a token, and writes the file", async () => {
    const [gateway, slack] = await Promise.all([startSandbox(), startSlack()]);
    const { answer, running, file } = await open({ SLACK_API_URL: slack.apiUrl });
    await answer("What is next?", ENTER);
    await answer("Socket Mode", ENTER);
    await answer("App-level token", slack.appToken, ENTER);
    await answer("Bot token", slack.appToken, ENTER);
    await answer("must be a bot token (xoxb-…)");
    await answer("Try it again?", ENTER);
    await answer("Socket Mode", ENTER);
    await answer("App-level token", ENTER);
    await answer("Bot token", "\u0015", slack.botToken, ENTER);
    await answer("It works.");
    await answer("What is next?", DOWN, ENTER);
    await answer("Ollama", ...Array<string>(5).fill(DOWN), ENTER);
    await answer("Address", gateway.url, ENTER);
    await answer("Key", "sk-sandbox-all", ENTER);
    await answer("Model that answers", ENTER);
    await answer("Model that draws", ENTER);
    await answer("It works.");
    await answer("What is next?", ENTER);
    await answer("Write them to", ENTER);
    expect(await running).toBe(true);
    expect(parseEnv(await file())).toEqual({
      SLACK_APP_TOKEN: slack.appToken,
      SLACK_BOT_TOKEN: slack.botToken,
      GATEWAY_BASE_URL: gateway.url,
      GATEWAY_API_KEY: "sk-sandbox-all",
      CHAT_MODEL: "sandbox-chat",
    });
  });

  test("shows the link that lets the bot in, and saves nothing for a person who leaves", async () => {
    const discord = await startDiscord();
    const { answer, running, shown, file } = await open({ DISCORD_API_URL: discord.apiUrl });
    await answer("What is next?", DOWN, ENTER);
    await answer("Bot token", discord.token, ENTER);
    await answer("https://discord.com/oauth2/authorize?client_id=");
    await answer("Try it again?", "\u0003");
    expect(await running).toBe(false);
    expect(shown()).toContain("Nothing was saved.");
    await expect(file()).rejects.toThrow(/ENOENT/);
  });
});
