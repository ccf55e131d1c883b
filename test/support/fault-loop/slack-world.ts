import { createSlackAdapter } from "../../../adapters/slack/index.ts";
import { openSlack, type Slack } from "../../simulators/slack/control.ts";
import type { Fault } from "../../simulators/slack/faults.ts";
import { listOf, shownText, textOf } from "../../simulators/slack/shown-text.ts";
import type { Channel, Message } from "../../simulators/slack/world.ts";
import { silent } from "../log.ts";
import type { Random } from "../pacing/random.ts";
import { ANY_TURN, passing, type Shown, type World } from "./world.ts";

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
  const people = [slack.user({ name: "Ada" }), slack.user({ name: "Ben" }), slack.user({ name: "Eve" })] as const;
  const channel = slack.channel({ name: "general", members: people });
  const root = place === "thread" ? people[0].say(channel, "A thread.") : undefined;
  const asked = new Map<string, Message>();
  const hasKills = killsAtMs.length > 0;
  const speaker = (person: number) => people[person] ?? people[0];
  const all = () => [...slack.workspace.channels.values()].flatMap((one) => slack.answers(one));
  const find = (id: string) => all().find((message) => toId(message) === id);
  const hasBot = () => channel.members.has(slack.workspace.bot.id) && !channel.isArchived;

  /** Slack tells nobody later. */
  const hasListener = () => slack.connections() > 0;

  function keep(name: string, person: number, message: Message) {
    asked.set(name, message);
    const isSeen = place === "direct" || person === ASIDE || hasBot();
    return { name, id: toId(message), person, isTold: isSeen && hasListener() };
  }

  return {
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
    hasListener,
    ask(name, person) {
      const by = speaker(person);
      return keep(name, person, place === "direct" ? by.dm(name) : by.mention(channel, name, root && { thread: root }));
    },
    askAside: (name) => keep(name, ASIDE, people[ASIDE].dm(name)),
    edit({ name, person }, text) {
      const message = asked.get(name);
      const mention = place === "direct" ? "" : `<@${slack.workspace.bot.id}> `;
      if (message !== undefined) speaker(person).edit(message, `${mention}${text}`);
    },
    remove({ name, person }) {
      const message = asked.get(name);
      if (message !== undefined) speaker(person).delete(message);
    },
    shown: () => all().map(toShown),
    removeShown(id) {
      const message = find(id);
      if (message !== undefined) people[0].delete(message);
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
    troubles: Object.keys(TROUBLES),
    disturbing: new Set(["archived", "removed"]),
    inflict: (trouble, random) => TROUBLES[trouble]?.({ slack, channel, random, asked: [...asked.values()], hasKills }),
    breaks: () => slack.violations.map(({ kind, sentence }) => ({ kind, sentence })),
    close: slack.close,
  };
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

/** The faults of Slack. */
const TROUBLES: Readonly<Record<string, (victim: Victim) => (() => void) | undefined>> = {
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

function toShown(message: Message): Shown {
  const { content, stream } = message;
  const elements = content.blocks.flatMap((block) => (block["type"] === "actions" ? listOf(block["elements"]) : []));
  const buttons = elements.map((element) => ({
    label: textOf((element["text"] as { text?: unknown } | undefined)?.text),
    payload: textOf(element["value"]),
  }));
  const isStream = stream?.state === "in_progress";
  // Slack's own Stop, which ends whatever grows in the thread.
  if (isStream) buttons.push({ label: "Stop", payload: ANY_TURN });
  const states = message.states.map(({ shown }) => shown);
  return { id: toId(message), text: shownText(content), states, buttons, isGrowing: isStream };
}
