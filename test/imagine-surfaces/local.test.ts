import { randomUUID } from "node:crypto";
import { onTestFinished } from "vitest";
import type { MessageRow } from "../../adapters/local/page/wire.ts";
import type { Adapter } from "../../src/port/adapter.ts";
import { imagineContract } from "../support/imagine-contract.ts";
import type { GivenFile, Shown, ShownPicture, Surface } from "../support/imagine-surface.ts";
import { connectLocal, isBot } from "../support/local-client.ts";
import { startLocalPage } from "../support/local-page.ts";
import { type PictureWorld, startPictureWorld } from "../support/picture-world.ts";

const CHAT = "chat-1";

/** One run of the bot, and the page that shows it. */
async function startBot(world: PictureWorld) {
  const engine = world.start((): Adapter => page.adapter);
  const { database } = world;
  const page = await startLocalPage({ database, accept: engine.accept, imagine: engine.imagineMenu });
  const client = await connectLocal(page.url);
  const idle = async () => {
    await engine.idle();
    // What happened last may still be on its way to the page.
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

function toShown({ id, text, buttons }: MessageRow): Shown {
  return { id: String(id), text, buttons: buttons.map(({ action }) => action) };
}

function toPicture(row: MessageRow, url: string): ShownPicture[] {
  const [file] = row.files;
  if (file === undefined) return [];
  const read = async () => new Uint8Array(await (await fetch(`${url}/local/files/${file.id}`)).arrayBuffer());
  return [{ ...toShown(row), name: file.name, altText: file.altText ?? "", read }];
}

async function startSurface(): Promise<Surface> {
  const world = await startPictureWorld();
  let bot = await startBot(world);
  const { id: bobId } = (await (await bot.page.post("/local/people", { name: "Bob" })).json()) as { id: string };
  const people = { ada: "ada", bob: bobId };
  const all = () => bot.client.messages().filter(isBot);
  const buttonsOf = ({ id }: Shown) => all().find((row) => String(row.id) === id)?.buttons ?? [];
  const turnOf = (on: Shown, action: string) => buttonsOf(on).find((button) => button.action === action)?.turnId;
  const attach = async (files: readonly GivenFile[]) => {
    const kept = await Promise.all(files.map(({ name, bytes }) => bot.page.upload(name, bytes)));
    return kept.map(({ id }) => id);
  };

  return {
    world,
    pictures: () => all().flatMap((row) => toPicture(row, bot.page.url)),
    notes: () => all().flatMap((row) => (row.files.length > 0 ? [] : [toShown(row)])),
    async imagine(prompt, { files = [], options = {} } = {}) {
      await bot.page.send({ channelId: CHAT, text: `/imagine ${prompt}`, fileIds: await attach(files), options });
    },
    async say(text, files = []) {
      await bot.page.send({ channelId: CHAT, text, fileIds: await attach(files) });
    },
    async press(on, action, who = "ada") {
      const body = { nonce: randomUUID(), authorId: people[who], action, turnId: turnOf(on, action) };
      const answer = await bot.page.post(`/local/messages/${on.id}/action`, body);
      if (!answer.ok) throw new Error(await answer.text());
    },
    async edit(picture, prompt) {
      const basis = turnOf(picture, "edit") ?? "";
      const form = await fetch(`${bot.page.url}/local/pictures/${encodeURIComponent(basis)}`);
      const { options } = (await form.json()) as { options: object };
      await bot.page.send({ channelId: CHAT, text: `/imagine ${prompt}`, options: { ...options, basis } });
    },
    async until<T>(find: () => T | undefined | false, what: string): Promise<T> {
      let found: T | undefined | false;
      await bot.client
        .until(() => Boolean((found = find())))
        .catch((cause: unknown) => {
          throw new Error(`In vain: ${what}.`, { cause });
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

imagineContract("the local page", startSurface);
