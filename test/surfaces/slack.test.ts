import { onTestFinished } from "vitest";
import { toShortcutId } from "../../adapters/slack/install/slash-commands.ts";
import type { Dialect } from "../../lab/slack-sim/dialect.ts";
import type { Person as SlackPerson } from "../../lab/slack-sim/people.ts";
import { smallPrint } from "../../lab/slack-sim/shown-text.ts";
import type { Channel, Ephemeral, Json, Message } from "../../lab/slack-sim/world.ts";
import type { Adapter } from "../../src/port/adapter.ts";
import type { Action } from "../../src/port/events.ts";
import { startAdapter } from "../adapters/slack/stage.ts";
import type { TransportName } from "../support/bolt-app.ts";
import { imagineContract } from "../support/imagine-contract.ts";
import { type Slack, startSlack } from "../support/slack.ts";
import type { Person, Said, SayOptions, Shown, ShownPicture, Surface } from "../support/surface.ts";
import { type Differences, surfaceContract } from "../support/surface-contract.ts";
import { startWorld, type World, type WorldOptions } from "../support/surface-world.ts";

/** Other tests check the pace. */
const LIMITS = { postBurst: 100 };

interface SlackKind {
  transport: TransportName;
  dialect: Dialect;
  /** Answers are streamed, and messages contain images with text and buttons. */
  isNew: boolean;
}

/** One run of the bot. */
async function startBot(slack: Slack, world: World, { transport }: SlackKind) {
  const engine = world.start((): Adapter => adapter);
  const { accept, commands, findTurn, isListening, looking, imagineMenu, scheduleForm } = engine;
  // Other tests check how long Slack needs for a file.
  const pollPausesMs = [1, 20, 50, 100, 200];
  const { adapter } = await startAdapter(slack, {
    accept,
    commands,
    findTurn,
    isListening,
    looking,
    imagine: imagineMenu,
    scheduleForm,
    transport,
    pollPausesMs,
  });
  const stop = async () => {
    await slack.acknowledged();
    await adapter.pause();
    await engine.queue.close(0);
    await adapter.close();
  };
  onTestFinished(() => engine.queue.close(0));
  return { stop, idle: engine.idle };
}

/** Reads everything that the bot shows in a channel, and directly to Ada. */
function readMessages(slack: Slack, channel: Channel, people: Record<Person, SlackPerson>) {
  const nameOf = (userId: string) => (userId === people.bob.id ? "bob" : "ada");

  function toShown(message: Message | Ephemeral): Shown {
    const { ts, content } = message;
    const elements = content.blocks.flatMap((block) => (block["elements"] ?? []) as Json[]);
    const buttons = elements.flatMap(({ action_id: id }) => (typeof id === "string" ? [id as Action] : []));
    return {
      id: ts,
      sources: smallPrint(content).flatMap((print) =>
        print.split("\n").flatMap((line) => /^(\d+\.) <([^|]+)\|(.+)>$/.exec(line)?.slice(1).join(" ") ?? []),
      ),
      text: "states" in message ? (message.states.at(-1)?.shown ?? "") : message.shown,
      buttons,
      fileNames: content.files.map(({ title }) => title),
      onlyFor: "userId" in message ? nameOf(message.userId) : message.channel === channel ? undefined : "ada",
    };
  }

  function toPicture(message: Message): ShownPicture[] {
    const { shared } = (message.content.metadata?.["event_payload"] ?? {}) as Json;
    const [before] = channel.messages.get(String(shared))?.content.files ?? [];
    if (before !== undefined) {
      const { title: name, altText, bytes } = before;
      return [{ ...toShown(message), name, altText, read: async () => bytes }];
    }
    const image = message.content.blocks.find(({ type }) => type === "image");
    const file = slack.workspace.files.get(String((image?.["slack_file"] as Json | undefined)?.["id"]));
    if (image === undefined || file === undefined) return [];
    const { name, bytes } = file;
    return [{ ...toShown(message), name, altText: String(image["alt_text"]), read: async () => bytes }];
  }

  const all = () => [channel, people.ada.direct()].flatMap((place) => slack.answers(place));
  const isOfPicture = (message: Message) =>
    toPicture(message).length > 0 || message.content.files.some(({ mimeType }) => mimeType.startsWith("image/"));
  return {
    pictures: () => all().flatMap(toPicture),
    notes: () => [
      ...all().flatMap((message) => (isOfPicture(message) ? [] : [toShown(message)])),
      ...slack.ephemerals(channel).map(toShown),
    ],
    find({ id }: Shown): Message | Ephemeral {
      const found = [...all(), ...slack.ephemerals(channel)].find(({ ts }) => ts === id);
      if (found === undefined) throw new Error(`Message ${id} is gone.`);
      return found;
    },
  };
}

/** The values of a submitted form. */
function toValues(prompt: string, options: object = {}, files: readonly Json[] = []): Json {
  const chosen = Object.entries(options).map(([name, value]) => [name, { value: { selected_option: { value } } }]);
  return {
    prompt: { value: { value: prompt } },
    ...Object.fromEntries(chosen),
    ...(files.length > 0 && { references: { value: { type: "file_input", files } } }),
  };
}

async function submit(slack: Slack, person: SlackPerson, values: Json): Promise<void> {
  const form = await slack.until(() => slack.view(person), "the form");
  await person.submitView(form, values);
}

async function startSurface(kind: SlackKind, options: WorldOptions = {}): Promise<Surface> {
  const slack = await startSlack({ dialect: kind.dialect, limits: LIMITS });
  if (!kind.isNew) {
    slack.setUnknown("slack_file");
    slack.setStreaming("unknown_method");
  }
  const people = { ada: slack.user({ name: "Ada" }), bob: slack.user({ name: "Bob" }) };
  const { ada } = people;
  const channel = slack.channel({ name: "general", members: [ada, people.bob] });
  const world = await startWorld(options);
  const { find, ...seen } = readMessages(slack, channel, people);
  const said = new Map<string, Message>();
  let bot = await startBot(slack, world, kind);
  let thread: Message | undefined;

  const mentionOf = (who: Person | "bot") => `<@${who === "bot" ? slack.workspace.bot.id : people[who].id}>`;
  const findSaid = ({ id }: Said): Message => {
    const found = said.get(id);
    if (found === undefined) throw new Error(`No one has said ${id}.`);
    return found;
  };
  function note(message: Message): Said {
    said.set(message.ts, message);
    return { id: message.ts };
  }
  function say(text: string, { files = [], who = "ada" }: SayOptions): Message {
    const place = thread === undefined ? {} : { thread };
    const person = people[who];
    return files.length > 0 ? person.upload(channel, files, text, place) : person.say(channel, text, place);
  }

  return {
    world,
    ...seen,
    async ask(text, more = {}) {
      thread = undefined;
      thread = say(`${mentionOf("bot")} ${text}`, more);
      return note(thread);
    },
    goOn: async (text, more = {}) => note(say(text, more)),
    askDirectly: async (text) => note(ada.dm(text)),
    mentionOf,
    rewrite: async (one, text) => ada.edit(findSaid(one), `${mentionOf("bot")} ${text}`),
    takeBack: async (one) => ada.delete(findSaid(one)),
    redeliver: async (one) => void (await slack.redeliver(findSaid(one))),
    isMarked: (one) => (findSaid(one).reactions.get("hourglass_flowing_sand")?.size ?? 0) > 0,
    command: async (name, text = "") => void (await ada.command(`/${name}`, text, channel)),
    chooseCommand: async (on, name) => void (await ada.shortcut(toShortcutId(name, "message"), findSaid(on))),
    async imagine(prompt, { files = [], options } = {}) {
      const needsForm = files.length > 0 || options !== undefined;
      await ada.command("/imagine", needsForm ? "" : prompt, channel);
      if (needsForm) await submit(slack, ada, toValues(prompt, options, ada.attach(files)));
    },
    pings: () => slack.pings,
    async press(on, action, who = "ada") {
      const message = find(on);
      if (action === "stop" && "stream" in message && message.stream?.state === "in_progress")
        people[who].stop(message);
      else await people[who].press(message, action);
    },
    async editPicture(picture, prompt) {
      await ada.press(find(picture), "edit");
      await submit(slack, ada, toValues(prompt));
    },
    async changeSchedule(on, change) {
      await ada.press(find(on), "reschedule");
      const form = await slack.until(() => slack.view(ada), "the form");
      const blocks = form.body["blocks"] as { block_id?: string; element?: { initial_value?: string } }[];
      const shown = Object.fromEntries(blocks.map(({ block_id, element }) => [block_id, element?.initial_value]));
      const { time, task } = change({ time: shown["time"] ?? "", task: shown["task"] ?? "" });
      const { response } = await ada.submitView(form, {
        time: { value: { value: time } },
        task: { value: { value: task } },
      });
      return (response as { errors?: { time?: string } } | undefined)?.errors?.time;
    },
    until: slack.until,
    async idle() {
      await slack.acknowledged();
      await bot.idle();
    },
    async restart() {
      await bot.stop();
      bot = await startBot(slack, world, kind);
    },
  };
}

const KINDS: ReadonlyArray<[name: string, kind: SlackKind, not: Differences]> = [
  ["Slack over Socket Mode", { transport: "Socket Mode", dialect: "usual", isNew: true }, {}],
  [
    "a Slack without streams and pictures inside messages, over HTTP",
    { transport: "HTTP", dialect: "spare", isNew: false },
    { noPrivateFiles: "a message for one person alone shows files only inside" },
  ],
];

for (const [name, kind, not] of KINDS) {
  surfaceContract(name, (options) => startSurface(kind, options), not);
  imagineContract(name, () => startSurface(kind));
}
