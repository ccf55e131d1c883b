import { z } from "zod";
import { type Controlled, route, type ShownMessage } from "../support/control.ts";
import { flatten } from "./component-rules.ts";
import { ACKNOWLEDGE_MS, type Interaction } from "./interaction.ts";
import { createDiscord, type Discord } from "./simulator.ts";
import { type Channel, type Message, shown, type User } from "./world.ts";

/** A Discord to use by hand: a server with two channels that everyone is in. */
export interface Playground {
  discord: Discord;
  controlled: Controlled;
}

const fault = z.strictObject({
  /** A route such as `POST /channels/:channel/messages`, or `*`. */
  route: z.string().min(1),
  status: z.union([z.int(), z.enum(["reset", "silence"])]),
  times: z.int().min(1).default(1),
  skip: z.int().min(0).default(0),
  retryAfterMs: z.int().min(1).default(1_000),
  /** With `after`, Discord executes the call but the response is lost. */
  when: z.enum(["before", "after"]).default("before"),
});

const connection = z.strictObject({ end: z.enum(["drop", "reconnect", "resumable", "invalid", "mute"]) });

export async function openPlayground(port = 0): Promise<Playground> {
  const discord = await createDiscord({ port });
  const guild = discord.addGuild({ name: "Acme" });
  for (const name of ["general", "random"]) discord.addChannel(guild, name);
  const people = new Map<string, User>();
  for (const name of ["ada", "ben"]) personOf(name);

  function personOf(name: string): User {
    const person = people.get(name) ?? discord.addUser(name, guild);
    people.set(name, person);
    return person;
  }

  /** Returns all channels and threads, but no direct conversations. */
  function rooms(): Channel[] {
    return discord.places().filter(({ kind }) => kind !== "dm");
  }

  function channelOf(name: string, person: string): Channel {
    if (name === "direct") return discord.openDm(personOf(person));
    const channel = rooms().find((one) => one.name === name || one.id === name);
    if (channel !== undefined) return channel;
    throw new Error(`There is no channel "${name}": there are ${controlled.channels.join(", ")} and direct.`);
  }

  function messageOf(name: string, person: string, id: string): Message {
    const message = discord.messages(channelOf(name, person)).find((one) => one.id === id);
    if (message === undefined) throw new Error(`There is no message ${id} in ${name}.`);
    return message;
  }

  function show(message: Message): ShownMessage {
    const { content, components, attachments } = shown(message);
    const buttons = flatten(components).flatMap(({ component: { label } }) => (typeof label === "string" ? label : []));
    const { ephemeralFor } = message;
    return {
      id: message.id,
      author: message.author.name,
      text: content,
      isGrowing: buttons.includes("Stop"),
      buttons,
      files: attachments.map(({ name }) => name),
      ...(ephemeralFor !== undefined && { onlyFor: [...people].find(([, { id }]) => id === ephemeralFor)?.[0] ?? "" }),
    };
  }

  /** Waits for the bot's response as long as Discord does. */
  async function outcomeOf(interaction: Interaction) {
    const isOver = () => interaction.acknowledgedAtMs !== undefined;
    const isAcknowledged = await discord.until(isOver, "the bot to acknowledge", ACKNOWLEDGE_MS).then(
      () => true,
      () => false,
    );
    return { isAcknowledged, ...(interaction.modal !== undefined && { modal: interaction.modal }) };
  }

  const controlled: Controlled = {
    get people() {
      return [...people.keys()];
    },
    get channels() {
      return rooms().map(({ name }) => name);
    },
    say({ person, channel, text, thread, mention }) {
      const place = channelOf(thread ?? channel, person);
      return { id: discord.people.say(place, personOf(person), text, { mentionBot: mention }).id };
    },
    edit: ({ person, channel, id, text }) => discord.people.edit(messageOf(channel, person, id), text),
    remove: ({ person, channel, id }) => discord.people.delete(messageOf(channel, person, id)),
    messages(channel, person) {
      const { id } = personOf(person);
      const isSeen = ({ ephemeralFor }: Message) => ephemeralFor === undefined || ephemeralFor === id;
      return discord.messages(channelOf(channel, person)).filter(isSeen).map(show);
    },
    press: ({ person, channel, id, button }) =>
      outcomeOf(discord.people.press(messageOf(channel, person, id), personOf(person), button)),
    command: ({ person, channel, command, options }) =>
      outcomeOf(
        discord.people.command(channelOf(channel, person), personOf(person), command.replace(/^\//, ""), options),
      ),
    faults: route(fault, (body) => discord.faults.failNext(body.route, body)),
    connections: route(connection, ({ end }) => {
      const { gateway } = discord;
      if (end === "resumable" || end === "invalid") gateway.invalidate(end === "resumable");
      else gateway[end]();
    }),
    requests: discord.requests,
    violations: discord.violations,
  };
  return { discord, controlled };
}
