import { z } from "zod";
import { type Controlled, route, type ShownMessage } from "../support/control.ts";
import { openSlack, type Slack } from "./control.ts";
import type { Person } from "./people.ts";
import { listOf, shownText, textOf } from "./shown-text.ts";
import { type Channel, type Ephemeral, isOfApp, type Json, type Message } from "./world.ts";

/** A Slack to use by hand: one workspace with two channels that everyone is in. */
export interface Playground {
  slack: Slack;
  controlled: Controlled;
}

const fault = z.strictObject({
  /** A method, for example `chat.postMessage`, or `*`. */
  method: z.string().min(1),
  times: z.int().min(1).default(1),
  error: z.string().optional(),
  status: z.int().optional(),
  retryAfterS: z.int().min(1).optional(),
  delayMs: z.int().min(0).optional(),
  cutsConnection: z.boolean().optional(),
  /** If true, the call is executed but its response is lost. */
  isDone: z.boolean().optional(),
});

const connection = z.strictObject({ end: z.enum(["warning", "refresh_requested", "drop"]) });

export async function openPlayground(port = 0): Promise<Playground> {
  const slack = await openSlack({ port });
  const people = new Map<string, Person>();
  const channels = new Map(["general", "random"].map((name) => [name, slack.channel({ name })]));
  for (const name of ["ada", "ben"]) personOf(name);

  /** Finds a person by name, or creates one with this name. */
  function personOf(name: string): Person {
    const known = people.get(name);
    if (known !== undefined) return known;
    const person = slack.user({ name });
    people.set(name, person);
    for (const { members } of channels.values()) members.add(person.id);
    return person;
  }

  function channelOf(name: string, person: string): Channel {
    const channel = name === "direct" ? personOf(person).direct() : channels.get(name);
    if (channel !== undefined) return channel;
    throw new Error(`There is no channel "${name}": there are ${controlled.channels.join(", ")} and direct.`);
  }

  function messageOf(channel: Channel, ts: string): Message {
    const message = channel.messages.get(ts);
    if (message === undefined) throw new Error(`There is no message ${ts} in ${channel.name}.`);
    return message;
  }

  function show(message: Message | Ephemeral): ShownMessage {
    const { ts, threadTs, content } = message;
    const isMessage = "states" in message;
    const nameOf = (id: string) => [...people].find(([, person]) => person.id === id)?.[0] ?? id;
    const isByBot = !isMessage || isOfApp(message);
    return {
      id: ts,
      ...(threadTs !== undefined && { thread: threadTs }),
      author: isByBot ? slack.workspace.bot.name : nameOf(message.author.id),
      text: shownText(content),
      isGrowing: isMessage && message.stream?.state === "in_progress",
      buttons: buttonsOf(message).map(({ label }) => label),
      files: content.files.map((file) => file.name),
      ...(!isMessage && { onlyFor: nameOf(message.userId) }),
    };
  }

  const controlled: Controlled = {
    get people() {
      return [...people.keys()];
    },
    channels: [...channels.keys()],
    say({ person, channel, text, thread, mention }) {
      const place = channelOf(channel, person);
      const root = thread === undefined ? {} : { thread: messageOf(place, thread) };
      const speaker = personOf(person);
      return { id: (mention ? speaker.mention(place, text, root) : speaker.say(place, text, root)).ts };
    },
    edit: ({ person, channel, id, text }) => personOf(person).edit(messageOf(channelOf(channel, person), id), text),
    remove: ({ person, channel, id }) => personOf(person).delete(messageOf(channelOf(channel, person), id)),
    messages(channel, person) {
      const place = channelOf(channel, person);
      const all = [...slack.messages(place), ...slack.ephemerals(place, personOf(person).id)];
      return all.toSorted((a, b) => (a.ts < b.ts ? -1 : 1)).map(show);
    },
    async press({ person, channel, id, button: label }) {
      const place = channelOf(channel, person);
      const presser = personOf(person);
      const message = place.ephemerals.find(({ ts }) => ts === id) ?? messageOf(place, id);
      const button = buttonsOf(message).find((one) => one.label === label);
      if (button === undefined) throw new Error(`The message has no button "${label}".`);
      if (!("states" in message)) return presser.press(message, button.actionId);
      if (button.kind === "stop") return presser.stop(message);
      if (button.kind !== undefined) return presser.judge(message, button.kind);
      return presser.press(message, button.actionId);
    },
    command: ({ person, channel, command, text }) =>
      personOf(person).command(`/${command.replace(/^\//, "")}`, text, channelOf(channel, person)),
    faults: route(fault, ({ method, times, ...rest }) => {
      const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
      slack.failNext(method, given, times);
    }),
    connections: route(connection, ({ end }) => (end === "drop" ? slack.dropConnections() : slack.disconnect(end))),
    requests: slack.requests,
    violations: slack.violations,
  };
  return { slack, controlled };
}

interface Button {
  label: string;
  actionId: string;
  /** Set for Slack's own buttons. */
  kind?: "stop" | "positive_button" | "negative_button";
}

function buttonsOf(message: Message | Ephemeral): Button[] {
  const { blocks } = message.content;
  const elements = blocks.flatMap((block) => [...listOf(block["elements"]), ...listOf([block["accessory"]])]);
  const buttons = elements.flatMap((element): Button[] => {
    const actionId = textOf(element["action_id"]);
    if (element["type"] !== "feedback_buttons") return actionId === "" ? [] : [{ label: labelOf(element), actionId }];
    const kinds = ["positive_button", "negative_button"] as const;
    return kinds.flatMap((kind) => listOf([element[kind]]).map((one) => ({ label: labelOf(one), actionId, kind })));
  });
  const isGrowing = "states" in message && message.stream?.state === "in_progress";
  return isGrowing ? [...buttons, { label: "Stop", actionId: "", kind: "stop" }] : buttons;
}

function labelOf({ text, action_id }: Json): string {
  return textOf(listOf([text])[0]?.["text"]) || textOf(action_id);
}
