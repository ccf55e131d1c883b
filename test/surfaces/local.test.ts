import { randomUUID } from "node:crypto";
import { onTestFinished } from "vitest";
import type { MessageRow, ScheduleFields } from "../../adapters/local/page/wire.ts";
import type { Adapter } from "../../src/port/adapter.ts";
import { readSmallPrint } from "../../src/text/sources.ts";
import { imagineContract } from "../support/imagine-contract.ts";
import { connectLocal, isBot } from "../support/local-client.ts";
import { startLocalPage } from "../support/local-page.ts";
import {
  type GivenFile,
  notHere,
  type Said,
  type SayOptions,
  type Shown,
  type ShownPicture,
  type Surface,
  toSourceLine,
} from "../support/surface.ts";
import { surfaceContract } from "../support/surface-contract.ts";
import { startWorld, type World, type WorldOptions } from "../support/surface-world.ts";

/** One run of the bot, and the page that shows it. */
async function startBot(world: World) {
  const engine = world.start((): Adapter => page.adapter);
  const { accept, commands, imagineMenu, scheduleForm } = engine;
  const { database } = world;
  const page = await startLocalPage({ database, accept, commands, imagine: imagineMenu, scheduleForm });
  const client = await connectLocal(page.url);
  const idle = async () => {
    await engine.idle();
    // The last change may still be in transit to the page.
    const rows = (await page.rows()).filter((row) => row.type === "message");
    const seen = (id: number) => client.messages().find((message) => message.id === id)?.seq ?? 0;
    await client.until(() => rows.every(({ id, seq }) => seen(id) >= seq));
  };
  const stop = async () => {
    await page.adapter.pause();
    await engine.queue.close(0);
    client.close();
    await page.close();
  };
  onTestFinished(stop);
  return { stop, page, client, idle };
}

function toShown({ id, text: whole, buttons, files }: MessageRow): Shown {
  const actions = buttons.map(({ action }) => action);
  const { text, lines } = readSmallPrint(whole);
  const shown = { id: String(id), text, sources: lines.map(toSourceLine), buttons: actions };
  return { ...shown, fileNames: files.map(({ name }) => name), onlyFor: undefined };
}

function toPicture(row: MessageRow, url: string): ShownPicture[] {
  const [file] = row.files;
  if (file?.isImage !== true) return [];
  const read = async () => new Uint8Array(await (await fetch(`${url}/local/files/${file.id}`)).arrayBuffer());
  return [{ ...toShown(row), name: file.name, altText: file.altText ?? "", read }];
}

async function startSurface(options: WorldOptions = {}): Promise<Surface> {
  const world = await startWorld(options);
  const nonces = new Map<string, () => Promise<unknown>>();
  let bot = await startBot(world);
  let chatId = "chat-0";
  const all = () => bot.client.messages().filter(isBot);
  const turnOf = (on: Shown, action: string) =>
    all()
      .find((row) => String(row.id) === on.id)
      ?.buttons.find((button) => button.action === action)?.turnId;
  const attach = async (files: readonly GivenFile[]) => {
    const kept = await Promise.all(files.map(({ name, bytes }) => bot.page.upload(name, bytes)));
    return kept.map(({ id }) => id);
  };
  async function say(text: string, { files = [] }: SayOptions): Promise<Said> {
    const body = { chatId, nonce: randomUUID(), text, fileIds: await attach(files) };
    const id = String(await bot.page.send(body));
    nonces.set(id, () => bot.page.send(body));
    return { id };
  }
  async function change(path: string, body: object): Promise<void> {
    const answer = await bot.page.post(`/local/messages/${path}`, { nonce: randomUUID(), ...body });
    if (!answer.ok) throw new Error(await answer.text());
  }

  return {
    world,
    pictures: () => all().flatMap((row) => toPicture(row, bot.page.url)),
    notes: () => all().flatMap((row) => (toPicture(row, bot.page.url).length > 0 ? [] : [toShown(row)])),
    ask(text, more = {}) {
      chatId = `chat-${randomUUID()}`;
      return say(text, more);
    },
    goOn: (text, more = {}) => say(text, more),
    askDirectly: notHere,
    mentionOf: notHere,
    rewrite: ({ id }, text) => change(`${id}/edit`, { text }),
    takeBack: ({ id }) => change(`${id}/delete`, {}),
    redeliver: async ({ id }) => void (await nonces.get(id)?.()),
    isMarked: notHere,
    command: async (name, text = "") => void (await bot.page.send({ chatId, text: `/${name} ${text}` })),
    chooseCommand: notHere,
    async imagine(prompt, { files = [], options: chosen = {} } = {}) {
      await bot.page.send({ chatId, text: `/imagine ${prompt}`, fileIds: await attach(files), options: chosen });
    },
    pings: () => [],
    press: (on, action) => change(`${on.id}/action`, { action, turnId: turnOf(on, action) }),
    async editPicture(picture, prompt) {
      const basis = turnOf(picture, "edit") ?? "";
      const form = await fetch(`${bot.page.url}/local/pictures/${encodeURIComponent(basis)}`);
      const { options: before } = (await form.json()) as { options: object };
      await bot.page.send({ chatId, text: `/imagine ${prompt}`, options: { ...before, basis } });
    },
    async changeSchedule(on, change) {
      const turnId = turnOf(on, "reschedule") ?? "";
      const form = await fetch(`${bot.page.url}/local/schedules/${turnId}?chatId=${chatId}`);
      const fields = change((await form.json()) as ScheduleFields);
      const body = { nonce: randomUUID(), action: "reschedule", turnId, fields };
      const answer = await bot.page.post(`/local/messages/${on.id}/action`, body);
      return answer.ok ? undefined : answer.text();
    },
    async until<T>(find: () => T | undefined | false, what: string): Promise<T> {
      let found: T | undefined | false;
      await bot.client
        .until(() => Boolean((found = find())))
        .catch((cause: unknown) => {
          throw new Error(`This did not come: ${what}.`, { cause });
        });
      return found as T;
    },
    idle: () => bot.idle(),
    async restart() {
      await bot.stop();
      bot = await startBot(world);
    },
  };
}

const ALONE = { noOthers: "one person uses the page" };
surfaceContract("the local page", startSurface, ALONE);
imagineContract("the local page", startSurface, ALONE);
