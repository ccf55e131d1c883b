/**
 * `npm run docs:pictures` creates the images for the documents. The service runs in its own process and answers on the
 * simulators of the tests. Only the model's words are scripted. The script records each change that a platform shows,
 * and Chromium renders it in our own frame. No image shows Slack's or Discord's own programs.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Browser, chromium, type Page } from "playwright-core";
import sharp from "sharp";
import { startSlowProxy } from "../../lab/bench/support/slow-proxy.ts";
import { createDiscord, type Discord } from "../../lab/discord-sim/simulator.ts";
import { openSlack, type Slack } from "../../lab/slack-sim/control.ts";
import { startService } from "../../lab/support/service.ts";
import { CHROMIUM } from "../../test/support/chromium.ts";
import { startParrotGateway } from "../../test/support/parrot-gateway.ts";
import { type Panel, toPage } from "./panels.ts";

const FOLDER = import.meta.dirname;
const SAMPLE_MS = 50;
/** The answers are complete if no message has changed for this long. */
const QUIET_MS = 3_000;
const LAST_FRAME_MS = 5_000;
const ROUND_TRIP_MS = 150;
const PIECE_MS = 200;
const SIZE = { width: 1080, height: 410 };

const QUESTION = "our nightly backup grew from 2 GB to 9 GB. Where do I look first?";
const ANSWER = `Look at what is **new and large** before anything else:

\`\`\`sh
find /srv -type f -newermt '3 days ago' -size +50M -printf '%s %p\\n' | sort -rn | head
\`\`\`

1. Logs: a service at level *debug* writes gigabytes in a night.
2. Dumps: a database dump beside the last one doubles the folder.
3. Caches: \`node_modules\` and browser profiles can be left out.

If nothing stands out, compare two snapshots by folder: the one that grew is the one to open.`;

interface Look {
  atMs: number;
  slack: Panel;
  discord: Panel;
}

const stack = new AsyncDisposableStack();
try {
  const looks = await record(stack);
  const browser = await chromium.launch({ executablePath: CHROMIUM ?? "chromium", args: ["--no-sandbox"] });
  stack.defer(() => browser.close());
  await drawGrowing(browser, looks);
  const last = looks.at(-1);
  if (last !== undefined) {
    await drawStill(browser, "slack", last.slack);
    await drawStill(browser, "discord", last.discord);
  }
  await drawSetup(browser, stack);
} finally {
  await stack.disposeAsync();
}

/** Asks the same question on both platforms and records each change until nothing changes any more. */
async function record(resources: AsyncDisposableStack): Promise<Look[]> {
  const gateway = await startParrotGateway(PIECE_MS, () => ANSWER);
  resources.defer(gateway.close);
  const slack = await openSlack();
  resources.defer(() => slack.close());
  const discord = await createDiscord({ latencyMs: ROUND_TRIP_MS });
  resources.defer(discord.close);
  const proxy = await startSlowProxy(slack.apiUrl, () => ROUND_TRIP_MS);
  resources.defer(proxy.close);
  const service = await startService(await makeDataDir(resources), {
    GATEWAY_BASE_URL: gateway.url,
    GATEWAY_API_KEY: "none",
    CHAT_MODEL: "scripted",
    SLACK_BOT_TOKEN: slack.botToken,
    SLACK_APP_TOKEN: slack.appToken,
    SLACK_API_URL: `${proxy.origin}/api/`,
    DISCORD_TOKEN: discord.token,
    DISCORD_API_URL: discord.apiUrl,
  });
  resources.defer(async () => void (await service.end("SIGTERM")));

  const ada = slack.user({ name: "Ada" });
  const slackChannel = slack.channel({ name: "operations", members: [ada] });
  const guild = discord.addGuild();
  const discordChannel = discord.addChannel(guild, "operations");
  const question = ada.mention(slackChannel, QUESTION);
  discord.people.say(discordChannel, discord.addUser("Ada", guild), QUESTION, { mentionBot: true });

  const looks: Look[] = [];
  for (let changedMs = Date.now(); Date.now() - changedMs < QUIET_MS; await sleep(SAMPLE_MS)) {
    const look = {
      atMs: Date.now(),
      slack: lookAtSlack(slack, slackChannel, question),
      discord: lookAtDiscord(discord, discordChannel),
    };
    const before = looks.at(-1);
    const isSame = JSON.stringify({ ...before, atMs: 0 }) === JSON.stringify({ ...look, atMs: 0 });
    if (isSame) continue;
    changedMs = look.atMs;
    looks.push(look);
  }
  return looks;
}

function lookAtSlack(
  slack: Slack,
  channel: Parameters<Slack["answers"]>[0],
  question: Parameters<Slack["status"]>[1],
): Panel {
  const status = slack.status(channel, question);
  const answers = slack.answers(channel, question).map(({ states, content, stream }) => ({
    author: "Palaver",
    isBot: true,
    markdown: states.at(-1)?.shown ?? "",
    buttons: stream?.state === "in_progress" ? [] : content.blocks.flatMap(labelsOf),
  }));
  return {
    platform: "slack",
    title: "Thread in #operations",
    messages: [{ author: "Ada", isBot: false, markdown: `@Palaver ${QUESTION}`, buttons: [] }, ...answers],
    note: status === "" ? "" : `Palaver ${status}`,
  };
}

function lookAtDiscord(discord: Discord, channel: Parameters<Discord["messages"]>[0]): Panel {
  const messages = discord.messages(channel).map(({ author, states }) => ({
    author: author === discord.bot ? "Palaver" : "Ada",
    isBot: author === discord.bot,
    markdown: (states.at(-1)?.content ?? "").replace(`<@${discord.bot.id}>`, "@Palaver"),
    buttons: (states.at(-1)?.components ?? []).flatMap(labelsOf),
  }));
  const isTyping = messages.length === 1 && discord.typing.length > 0;
  return { platform: "discord", title: "# operations", messages, note: isTyping ? "Palaver is typing…" : "" };
}

/** The labels of the buttons in a block or a component, in order. */
function labelsOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(labelsOf);
  if (typeof value !== "object" || value === null) return [];
  const part = value as Record<string, unknown>;
  if (part["type"] === "feedback_buttons") return ["👍", "👎"];
  // Slack has a name for each kind, Discord a number.
  if (part["type"] === "button" || part["type"] === 2)
    return [textOf(part["text"]) || textOf(part["label"]) || emojiOf(part["emoji"])];
  return [part["elements"], part["components"], part["accessory"]].flatMap(labelsOf).filter((label) => label !== "");
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "object" && value !== null && "text" in value ? String(value.text) : "";
}

function emojiOf(value: unknown): string {
  return typeof value === "object" && value !== null && "name" in value ? String(value.name) : "";
}

async function drawGrowing(browser: Browser, looks: readonly Look[]): Promise<void> {
  const page = await browser.newPage({ viewport: SIZE, deviceScaleFactor: 1.25 });
  const frames: Buffer[] = [];
  for (const { slack, discord } of looks) frames.push(await shoot(page, [slack, discord]));
  const delay = looks.map(({ atMs }, index) => (looks[index + 1]?.atMs ?? atMs + LAST_FRAME_MS) - atMs);
  const picture = sharp(frames, { join: { animated: true } });
  await writeFile(
    join(FOLDER, "growing.webp"),
    await picture.webp({ quality: 80, effort: 6, loop: 0, delay }).toBuffer(),
  );
  await page.close();
}

async function drawStill(browser: Browser, name: string, panel: Panel): Promise<void> {
  const page = await browser.newPage({ viewport: { ...SIZE, width: SIZE.width / 2 }, deviceScaleFactor: 2 });
  await writeFile(
    join(FOLDER, `${name}.webp`),
    await sharp(await shoot(page, [panel]))
      .webp({ quality: 80 })
      .toBuffer(),
  );
  await page.close();
}

/** Takes screenshots of the page's connection dialogs, on a service without any platform. */
async function drawSetup(browser: Browser, resources: AsyncDisposableStack): Promise<void> {
  const service = await startService(await makeDataDir(resources));
  resources.defer(async () => void (await service.end("SIGTERM")));
  const page = await browser.newPage({ viewport: { width: 780, height: 720 }, deviceScaleFactor: 1.5 });
  await page.goto(service.url);
  for (const name of ["Slack", "Discord"]) {
    await page
      .getByRole("button", { name: `Connect ${name}` })
      .first()
      .click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("listitem").first().waitFor();
    const file = join(FOLDER, `setup-${name.toLowerCase()}.webp`);
    await writeFile(
      file,
      await sharp(await dialog.screenshot({ animations: "disabled" }))
        .webp({ quality: 80 })
        .toBuffer(),
    );
    await page.keyboard.press("Escape");
  }
  await page.close();
}

async function makeDataDir(resources: AsyncDisposableStack): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "palaver-pictures-"));
  resources.defer(() => rm(path, { recursive: true, force: true }));
  return path;
}

async function shoot(page: Page, panels: readonly Panel[]): Promise<Buffer> {
  await page.setContent(toPage(panels));
  return page.screenshot();
}
