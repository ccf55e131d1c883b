import type { Random } from "../pacing/random.ts";
import type { Slack } from "../slack-sim/control.ts";
import type { Fault } from "../slack-sim/faults.ts";
import type { Person } from "../slack-sim/people.ts";
import { listOf, shownText, textOf } from "../slack-sim/shown-text.ts";
import type { Channel, Message, Workspace } from "../slack-sim/world.ts";
import { ANY_TURN, type Break, type Place, passing, type Shown } from "./place.ts";

const WRITES = ["chat.startStream", "chat.appendStream", "chat.stopStream", "chat.postMessage", "chat.update"];
export interface SlackPlaceOptions {
  place: "channel" | "direct" | "thread";
  workspace: Workspace;
  people: readonly Person[];
  /** People's questions by name. The place adds each question. */
  questions: Map<string, Message>;
  hasKills: boolean;
}

export function openSlackPlace(
  slack: Slack,
  { place, workspace, people, questions, hasKills }: SlackPlaceOptions,
): Place {
  const channel = slack.channel({ name: "general", members: people, workspace });
  const root = place === "thread" ? people[0]?.say(channel, "A thread.") : undefined;
  const speaker = (person: number): Person => people[person] ?? (people[0] as Person);
  const rooms = () => (place === "direct" ? people.map((person) => person.direct()) : [channel]);
  const find = (id: string) => allAnswers(workspace, slack).find((message) => toId(message) === id);

  function toLasting(): Place["lasting"] {
    const by = speaker(0);
    const room = place === "direct" ? by.direct() : channel;
    const threadTs = root?.ts;
    return {
      author: { id: `${workspace.id}/${by.id}`, name: by.user.name },
      reply: {
        platform: "slack",
        channelId: room.id,
        workspaceId: workspace.id,
        ...(threadTs !== undefined && { threadId: threadTs }),
        ...(place === "direct" && { isDirect: true }),
      },
      conversationId: ["slack", workspace.id, room.id, ...(threadTs === undefined ? [] : [threadTs])].join(":"),
    };
  }

  return {
    lasting: toLasting(),
    ask(name, person) {
      const by = speaker(person);
      const message = place === "direct" ? by.dm(name) : by.mention(channel, name, root && { thread: root });
      questions.set(name, message);
      return { name, id: toId(message), person };
    },
    edit({ name, person }, text) {
      const message = questions.get(name);
      const mention = place === "direct" ? "" : `<@${workspace.bot.id}> `;
      if (message !== undefined) speaker(person).edit(message, `${mention}${text}`);
    },
    remove({ name, person }) {
      const message = questions.get(name);
      if (message !== undefined) speaker(person).delete(message);
    },
    shown: () => rooms().flatMap((room) => slack.answers(room).map(toShown)),
    removeShown(id) {
      const message = find(id);
      if (message !== undefined) speaker(0).delete(message);
    },
    press(id, label, person) {
      const message = find(id);
      // People cannot see other people's direct conversations.
      if (message === undefined || !message.channel.members.has(speaker(person).id)) return;
      if (message.stream?.state === "in_progress") return speaker(person).stop(message);
      // The simulator checks that the bot responds in time.
      void speaker(person)
        .press(message, label.toLowerCase())
        .catch(() => {});
    },
    inflict: (trouble, random) =>
      TROUBLES[trouble]?.({ slack, channel, random, questions: [...questions.values()], hasKills }),
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
  questions: Message[];
  hasKills: boolean;
}

function failing(fault: (random: Random) => Fault): (victim: Victim) => undefined {
  return passing(({ slack, random }) => slack.failNext(random.pick(WRITES), fault(random), random.pick([1, 1, 2])));
}

/** Faults that stop the bot from finishing an answer. */
export const DISTURBING: ReadonlySet<string> = new Set(["archived", "removed"]);

export const TROUBLES: Readonly<Record<string, (victim: Victim) => (() => void) | undefined>> = {
  "429": failing((random) => ({ retryAfterS: random.pick([1, 2]) })),
  "500": failing((random) => ({ status: random.pick([500, 503]), isDone: random.next() < 0.5 })),
  error: failing((random) => ({ error: random.pick(["internal_error", "fatal_error", "service_unavailable"]) })),
  html: failing(() => ({ status: 502, html: "<html><body>Bad gateway</body></html>" })),
  reset: failing((random) => ({ cutsConnection: true, isDone: random.next() < 0.5 })),
  slow: passing(({ slack, random, hasKills }) => {
    // Slack cannot deduplicate posts: if a process dies during a slow post, the next process cannot find the message
    // and posts again.
    const method = random.pick(hasKills ? ["chat.appendStream", "chat.update"] : WRITES);
    slack.failNext(method, { delayMs: Math.round(random.between(300, 1_500)) }, random.pick([1, 1, 2]));
  }),
  refresh: passing(({ slack }) => slack.disconnect("refresh_requested")),
  warning: passing(({ slack }) => slack.disconnect("warning", { isOne: true })),
  drop: passing(({ slack }) => slack.dropConnections()),
  again: passing(({ slack, questions, random }) => {
    if (questions.length > 0) slack.redeliver(random.pick(questions)).catch(() => {});
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
  // Slack's own Stop button ends all growing messages in the thread.
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
