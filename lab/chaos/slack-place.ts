import { createSlackAdapter } from "../../../adapters/slack/index.ts";
import { openSlack, type Slack } from "../../simulators/slack/control.ts";
import type { Fault } from "../../simulators/slack/faults.ts";
import type { Person } from "../../simulators/slack/people.ts";
import { listOf, shownText, textOf } from "../../simulators/slack/shown-text.ts";
import type { Channel, Message, Workspace } from "../../simulators/slack/world.ts";
import { silent } from "../log.ts";
import type { Random } from "../pacing/random.ts";
import { ANY_TURN, type Break, type Place, passing, type Shown, type World } from "./world.ts";

const WRITES = ["chat.startStream", "chat.appendStream", "chat.stopStream", "chat.postMessage", "chat.update"];
/** The people who speak where nothing goes wrong. */
const ASIDE = 2;

export interface SlackWorldOptions {
  place: "channel" | "direct" | "thread";
  /** The workspace has streams. */
  streams: boolean;
  /** When the service is killed, milliseconds from the beginning. */
  killsAtMs: readonly number[];
}

/** A workspace with one channel in it. */
export async function openSlackWorld({ place, streams, killsAtMs }: SlackWorldOptions): Promise<World> {
  const slack = await openSlack({
    streaming: streams ? "on" : "unknown_method",
    // An event that was not acknowledged waits for minutes on the real one.
    limits: { retryMs: [0, 300, 1_500] },
  });
  const people = ["Ada", "Ben", "Eve"].map((name) => slack.user({ name }));
  const asked = new Map<string, Message>();
  const room = openSlackPlace(slack, { place, people, asked, hasKills: killsAtMs.length > 0 });

  return {
    ...room,
    origin: new URL(slack.apiUrl).origin,
    startAdapter: ({ origin, engine }) =>
      createSlackAdapter({
        transport: { mode: "socket", appToken: slack.appToken },
        installed: { botToken: slack.botToken },
        markKey: "key",
        apiUrl: `${origin}/api/`,
        commands: engine.commands,
        listModels: engine.listModels,
        findTurn: engine.findTurn,
        log: silent,
        now: slack.now,
        onFatal: () => {},
      }),
    // Slack tells nobody later.
    hasListener: () => slack.connections() > 0,
    askAside(name) {
      const message = (people[ASIDE] as Person).dm(name);
      asked.set(name, message);
      return { name, id: toId(message), person: ASIDE, isTold: slack.connections() > 0 };
    },
    shown: () => allAnswers(slack.workspace, slack).map(toShown),
    troubles: Object.keys(TROUBLES),
    disturbing: DISTURBING,
    breaks: () => slackBreaks(slack),
    close: slack.close,
  };
}

export interface SlackPlaceOptions {
  place: "channel" | "direct" | "thread";
  workspace?: Workspace;
  people: readonly Person[];
  /** Filled with what people have asked, by its name. */
  asked?: Map<string, Message>;
  /** The service is killed now and then. */
  hasKills: boolean;
}

/** A channel of a workspace, or what people write to the bot directly. */
export function openSlackPlace(
  slack: Slack,
  { place, workspace = slack.workspace, people, asked = new Map(), hasKills }: SlackPlaceOptions,
): Place {
  const channel = slack.channel({ name: "general", members: people, workspace });
  const root = place === "thread" ? people[0]?.say(channel, "A thread.") : undefined;
  const speaker = (person: number): Person => people[person] ?? (people[0] as Person);
  const rooms = () => (place === "direct" ? people.map((person) => person.direct()) : [channel]);
  const find = (id: string) => allAnswers(workspace, slack).find((message) => toId(message) === id);
  const hasBot = () => channel.members.has(workspace.bot.id) && !channel.isArchived;

  return {
    ask(name, person) {
      const by = speaker(person);
      const message = place === "direct" ? by.dm(name) : by.mention(channel, name, root && { thread: root });
      asked.set(name, message);
      // Slack tells nobody later.
      const isTold = (place === "direct" || hasBot()) && slack.connections() > 0;
      return { name, id: toId(message), person, isTold };
    },
    edit({ name, person }, text) {
      const message = asked.get(name);
      const mention = place === "direct" ? "" : `<@${workspace.bot.id}> `;
      if (message !== undefined) speaker(person).edit(message, `${mention}${text}`);
    },
    remove({ name, person }) {
      const message = asked.get(name);
      if (message !== undefined) speaker(person).delete(message);
    },
    shown: () => rooms().flatMap((room) => slack.answers(room).map(toShown)),
    removeShown(id) {
      const message = find(id);
      if (message !== undefined) speaker(0).delete(message);
    },
    press(id, label, person) {
      const message = find(id);
      // Nobody sees the direct conversations of others.
      if (message === undefined || !message.channel.members.has(speaker(person).id)) return;
      if (message.stream?.state === "in_progress") return speaker(person).stop(message);
      // The simulator judges among other things whether it was answered in time.
      void speaker(person)
        .press(message, label.toLowerCase())
        .catch(() => {});
    },
    inflict: (trouble, random) => TROUBLES[trouble]?.({ slack, channel, random, asked: [...asked.values()], hasKills }),
  };
}

function allAnswers(workspace: Workspace, slack: Slack): Message[] {
  return [...workspace.channels.values()].flatMap((one) => slack.answers(one));
}

export function slackBreaks(slack: Slack): Break[] {
  return slack.violations.map(({ kind, sentence, atMs }) => ({ kind, sentence, atMs }));
}

interface Victim {
  slack: Slack;
  channel: Channel;
  random: Random;
  asked: Message[];
  hasKills: boolean;
}

function failing(fault: (random: Random) => Fault): (victim: Victim) => undefined {
  return passing(({ slack, random }) => slack.failNext(random.pick(WRITES), fault(random), random.pick([1, 1, 2])));
}

/** After these an answer cannot be written to its end. */
const DISTURBING: ReadonlySet<string> = new Set(["archived", "removed"]);

/** The faults of Slack. */
export const TROUBLES: Readonly<Record<string, (victim: Victim) => (() => void) | undefined>> = {
  "429": failing((random) => ({ retryAfterS: random.pick([1, 2]) })),
  "500": failing((random) => ({ status: random.pick([500, 503]), isDone: random.next() < 0.5 })),
  error: failing((random) => ({ error: random.pick(["internal_error", "fatal_error", "service_unavailable"]) })),
  html: failing(() => ({ status: 502, html: "<html><body>Bad gateway</body></html>" })),
  reset: failing((random) => ({ cutsConnection: true, isDone: random.next() < 0.5 })),
  slow: passing(({ slack, random, hasKills }) => {
    // Nothing makes a post one here that is still on its way when its process dies: the next one cannot find it.
    const method = random.pick(hasKills ? ["chat.appendStream", "chat.update"] : WRITES);
    slack.failNext(method, { delayMs: Math.round(random.between(300, 1_500)) }, random.pick([1, 1, 2]));
  }),
  refresh: passing(({ slack }) => slack.disconnect("refresh_requested")),
  warning: passing(({ slack }) => slack.disconnect("warning", { isOne: true })),
  drop: passing(({ slack }) => slack.dropConnections()),
  again: passing(({ slack, asked, random }) => {
    if (asked.length > 0) slack.redeliver(random.pick(asked)).catch(() => {});
  }),
  hold({ slack, random }) {
    const release = slack.hold();
    return () => release(random.pick(["as-told", "reversed"]));
  },
  archived({ channel }) {
    channel.isArchived = true;
    return () => void (channel.isArchived = false);
  },
  removed({ slack, channel }) {
    const { id } = slack.workspace.bot;
    channel.members.delete(id);
    return () => void channel.members.add(id);
  },
};

function toId({ channel, ts }: Message): string {
  return `slack:${channel.workspace.id}:${channel.id}:${ts}`;
}

export function toShown(message: Message): Shown {
  const { content, stream } = message;
  const elements = content.blocks.flatMap((block) => (block["type"] === "actions" ? listOf(block["elements"]) : []));
  const buttons = elements.map((element) => ({
    label: textOf((element["text"] as { text?: unknown } | undefined)?.text),
    payload: textOf(element["value"]),
  }));
  const isStream = stream?.state === "in_progress";
  // Slack's own Stop, which ends whatever grows in the thread.
  if (isStream) buttons.push({ label: "Stop", payload: ANY_TURN });
  return {
    id: toId(message),
    text: shownText(content),
    states: message.states.map(({ shown }) => shown),
    statesAtMs: message.states.map(({ atMs }) => atMs),
    buttons,
    isGrowing: isStream,
  };
}
