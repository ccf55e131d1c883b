import { onTestFinished } from "vitest";
import type { Adapter } from "../../src/port/adapter.ts";
import type { Action } from "../../src/port/events.ts";
import { startAdapter } from "../adapters/slack/stage.ts";
import type { TransportName } from "../simulators/slack/bolt-app.ts";
import type { Person } from "../simulators/slack/people.ts";
import { type Slack, startSlack } from "../simulators/slack/slack.ts";
import type { Channel, Ephemeral, Json, Message } from "../simulators/slack/world.ts";
import { imagineContract } from "../support/imagine-contract.ts";
import type { Shown, ShownPicture, Surface } from "../support/imagine-surface.ts";
import { type PictureWorld, startPictureWorld } from "../support/picture-world.ts";

/** The pace is another test's matter. */
const LIMITS = { limits: { postBurst: 100 } };

interface SlackKind {
  transport: TransportName;
  /** Messages show pictures inside, with words and buttons. */
  hasPictures: boolean;
}

/** One run of the bot. */
async function startBot(slack: Slack, world: PictureWorld, { transport }: SlackKind) {
  const engine = world.start((): Adapter => adapter);
  const { accept, imagineMenu } = engine;
  // How long Slack takes with a file is another test's matter too.
  const pollPausesMs = [1, 20, 50, 100, 200];
  const { adapter } = await startAdapter(slack, { accept, imagine: imagineMenu, transport, pollPausesMs });
  const stop = async () => {
    await slack.acknowledged();
    await adapter.pause();
    await engine.queue.close(0);
    await adapter.close();
  };
  onTestFinished(() => engine.queue.close(0));
  return { stop, idle: engine.idle };
}

function toShown({ ts, content }: Message | Ephemeral, text: string): Shown {
  const elements = content.blocks.flatMap((block) => (block["elements"] ?? []) as Json[]);
  const buttons = elements.flatMap(({ action_id: id }) => (typeof id === "string" ? [id as Action] : []));
  return { id: ts, text, buttons };
}

function textOf({ states }: Message): string {
  return states.at(-1)?.shown ?? "";
}

function readMessages(slack: Slack, channel: Channel) {
  function toPicture(message: Message): ShownPicture[] {
    const { shared } = (message.content.metadata?.["event_payload"] ?? {}) as Json;
    const [before] = channel.messages.get(String(shared))?.content.files ?? [];
    if (before !== undefined) {
      const { title: name, altText, bytes } = before;
      return [{ ...toShown(message, textOf(message)), name, altText, read: async () => bytes }];
    }
    const image = message.content.blocks.find(({ type }) => type === "image");
    const file = slack.workspace.files.get(String((image?.["slack_file"] as Json | undefined)?.["id"]));
    if (image === undefined || file === undefined) return [];
    const { name, bytes } = file;
    const altText = String(image["alt_text"]);
    return [{ ...toShown(message, textOf(message)), name, altText, read: async () => bytes }];
  }

  const all = () => slack.answers(channel);
  return {
    pictures: () => all().flatMap(toPicture),
    notes: () => [
      ...all().flatMap((message) =>
        message.content.files.length > 0 || toPicture(message).length > 0 ? [] : [toShown(message, textOf(message))],
      ),
      ...slack.ephemerals(channel).map((one) => toShown(one, one.shown)),
    ],
    find({ id }: Shown): Message {
      const found = all().find(({ ts }) => ts === id);
      if (found === undefined) throw new Error(`Message ${id} is gone.`);
      return found;
    },
  };
}

/** A form as it is sent. */
function toValues(prompt: string, options: object = {}, files: readonly Json[] = []): Json {
  const chosen = Object.entries(options).map(([name, value]) => [name, { value: { selected_option: { value } } }]);
  return {
    prompt: { value: { value: prompt } },
    ...Object.fromEntries(chosen),
    ...(files.length > 0 && { references: { value: { type: "file_input", files } } }),
  };
}

async function submit(slack: Slack, person: Person, values: Json): Promise<void> {
  const form = await slack.until(() => slack.view(person), "the form");
  await person.submitView(form, values);
}

async function startSurface(kind: SlackKind): Promise<Surface> {
  const slack = await startSlack(LIMITS);
  if (!kind.hasPictures) slack.setUnknown("slack_file");
  const people = { ada: slack.user({ name: "Ada" }), bob: slack.user({ name: "Bob" }) };
  const { ada, bob } = people;
  const channel = slack.channel({ name: "general", members: [ada, bob] });
  const world = await startPictureWorld();
  const { find, ...seen } = readMessages(slack, channel);
  let bot = await startBot(slack, world, kind);
  let thread: Message | undefined;
  return {
    world,
    ...seen,
    async imagine(prompt, { files = [], options } = {}) {
      const needsForm = files.length > 0 || options !== undefined;
      await ada.command("/imagine", needsForm ? "" : prompt, channel);
      if (needsForm) await submit(slack, ada, toValues(prompt, options, ada.attach(files)));
    },
    async say(text, files = []) {
      const words = thread === undefined ? `<@${slack.workspace.bot.id}> ${text}` : text;
      const place = thread === undefined ? {} : { thread };
      const said = files.length > 0 ? ada.upload(channel, files, words, place) : ada.say(channel, words, place);
      thread ??= said;
    },
    async press(on, action, who = "ada") {
      await people[who].press(find(on), action);
    },
    async edit(picture, prompt) {
      await ada.press(find(picture), "edit");
      await submit(slack, ada, toValues(prompt));
    },
    until: slack.until,
    idle: () => bot.idle(),
    async restart() {
      await bot.stop();
      bot = await startBot(slack, world, kind);
    },
  };
}

imagineContract("Slack", () => startSurface({ transport: "Socket Mode", hasPictures: true }));
imagineContract("Slack, where messages show no pictures inside", () =>
  startSurface({ transport: "HTTP", hasPictures: false }),
);
