import { randomUUID } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { PassThrough } from "node:stream";
import { onTestFinished } from "vitest";
import { createConsoleAdapter } from "../../adapters/console/adapter.ts";
import { createPatience } from "../../lab/support/patience.ts";
import type { Adapter } from "../../src/port/adapter.ts";
import { type PrintedMessage, readPaper } from "../adapters/console/paper.ts";
import { notHere, type Shown, type ShownPicture, type Surface } from "../support/surface.ts";
import { surfaceContract } from "../support/surface-contract.ts";
import { startWorld, type WorldOptions } from "../support/surface-world.ts";

function toShown({ text: whole, buttons, files }: PrintedMessage, index: number): Shown {
  const fileNames = files.map((path) => basename(path).slice("12345678-".length));
  const [text = "", ...lines] = whole.split(/\n {2}(?=\(\d+: )/);
  const sources = lines.map((line) => line.replace(/^\((\d+): (.*), (\S+)\)$/, "$1. $3 $2"));
  const actions = buttons.map(({ action }) => action);
  return { id: String(index), text, sources, buttons: actions, fileNames, onlyFor: undefined };
}

function toPicture(message: PrintedMessage, index: number): ShownPicture[] {
  const shown = toShown(message, index);
  const [path] = message.files;
  const [name] = shown.fileNames;
  if (path === undefined || !name?.endsWith(".png")) return [];
  return [{ ...shown, name, altText: "", read: async () => readFile(path) }];
}

async function startSurface(options: WorldOptions = {}): Promise<Surface> {
  const world = await startWorld(options);
  const filesDir = await mkdtemp(join(tmpdir(), "palaver-console-"));
  const input = new PassThrough();
  const watchers = new Set<() => void>();
  let paper = "";
  function write(text: string): void {
    paper += text;
    for (const look of watchers) look();
  }
  const engine = world.start((): Adapter => adapter);
  const adapter = createConsoleAdapter({ input, output: { write }, filesDir, now: Date.now, onEnd: () => {} });
  await adapter.listen(engine.accept);
  onTestFinished(async () => {
    await engine.queue.close(0);
    await adapter.close();
    await rm(filesDir, { recursive: true, force: true });
  });
  async function enter(line: string) {
    input.write(`${line}\n`);
    return { id: randomUUID() };
  }
  const all = () => readPaper(paper);

  return {
    world,
    pictures: () => all().flatMap(toPicture),
    notes: () =>
      all().flatMap((message, index) => (toPicture(message, index).length > 0 ? [] : toShown(message, index))),
    ask: (text) => enter(`/new\n${text}`),
    goOn: enter,
    askDirectly: notHere,
    mentionOf: notHere,
    rewrite: notHere,
    takeBack: notHere,
    redeliver: notHere,
    isMarked: notHere,
    command: async (name, text = "") => void (await enter(`/${name} ${text}`)),
    chooseCommand: notHere,
    imagine: async (prompt) => void (await enter(`/imagine ${prompt}`)),
    pings: () => [],
    press: async (_, action) => void (await enter(`/${action}`)),
    editPicture: notHere,
    changeSchedule: notHere,
    async until<T>(find: () => T | undefined | false, what: string): Promise<T> {
      const { promise, resolve, reject } = Promise.withResolvers<T>();
      const patience = createPatience(() => reject(new Error(`This did not come: ${what}. There is:\n${paper}`)));
      const look = () => {
        patience.moved();
        const found = find();
        if (found !== undefined && found !== false) resolve(found);
      };
      watchers.add(look);
      look();
      return promise.finally(() => {
        watchers.delete(look);
        patience.end();
      });
    },
    idle: engine.idle,
    restart: notHere,
  };
}

surfaceContract("the console", startSurface, {
  noOthers: "one person sits at the terminal",
  noEdits: "an entered line stays",
  noFiles: "no one can attach a file at a terminal",
  noRedelivery: "a terminal hands over each line once",
  noAnswerButtons: "the terminal shows only buttons that an unfinished answer needs",
  noForms: "a terminal has only lines",
  noParallel: "answers that grow together would share lines",
  noSearch: "there is one conversation",
  noRestart: "what was printed stays, and a new process prints it again",
});
