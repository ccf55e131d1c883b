import type { OverwriteOptions } from "../../lab/discord-sim/builders.ts";
import type { Channel, User } from "../../lab/discord-sim/world.ts";
import { startAdapter } from "../adapters/discord/stage.ts";
import { alone, WORD } from "../search/rights.ts";
import { startDiscord } from "./discord.ts";

const MANY = { kind: "fixed" as const, limit: 1_000, windowMs: 5_000 };
export const SEE: OverwriteOptions = { allow: ["ViewChannel"] };
export const HIDE: OverwriteOptions = { deny: ["ViewChannel"] };

/** Ada asks. She and Bob are on the server; the role `staff` opens `staff`. Each channel has one message with its name. */
export async function startWorld() {
  const discord = await startDiscord({
    limits: { other: MANY, messages: MANY, globalPerSecond: 1_000 },
    allow: "anything",
  });
  const guild = discord.addGuild({ bot: ["Administrator"] });
  const role = (name: string) => discord.addRole(guild, name, []);
  const owner = guild.members.get(guild.ownerId)?.user ?? fail("owner");
  const roles = { staff: role("staff"), lead: role("lead"), muted: role("muted") };
  const [ada, bob] = [discord.addUser("ada", guild), discord.addUser("bob", guild)];
  discord.giveRole(guild, ada, roles.staff);
  const adapter = await startAdapter(discord);
  const channels: Record<string, Channel> = {};
  /** `closed`: only those in `overwrites` see it. */
  function add(name: string, overwrites: Record<string, OverwriteOptions> = {}, isClosed = false): Channel {
    const all = { ...(isClosed && { [guild.id]: HIDE }), ...overwrites };
    return keep(name, discord.addChannel(guild, name, { overwrites: all }));
  }
  function keep(name: string, channel: Channel): Channel {
    channels[name] = channel;
    discord.people.say(channel, owner, `${WORD} ${name}`);
    return channel;
  }
  add("general");
  add("open");
  add("staff", { [roles.staff.id]: SEE }, true);
  const thread = (on: string, name: string, { isPrivate = false, by = ada }: { isPrivate?: boolean; by?: User } = {}) =>
    keep(name, discord.people.openThread(channel(on), by, name, { isPrivate }));
  const channel = (name: string): Channel => channels[name] ?? fail(name);
  const close = (name: string, id: string, options: OverwriteOptions) => discord.overwrite(channel(name), id, options);
  const drop = (user: User, id: string) => guild.members.get(user.id)?.roleIds.delete(id);
  return { discord, guild, roles, ada, bob, add, thread, channel, close, drop, ...adapter };
}

export type World = Awaited<ReturnType<typeof startWorld>>;

/** A row of a table of rights. */
export interface Step {
  /** The place of the question; `only …`: only the asker sees the answer there. */
  asks: string;
  /** Happens before the question. */
  before?(world: World): unknown;
  /** Happens between the question and the answer. */
  meanwhile?(world: World): unknown;
}

export function fail(name: string): never {
  throw new Error(`There is no ${name}.`);
}

/** Asks, and resolves to the event of the question. */
export async function ask(world: World, { asks }: Step) {
  const [, only, place = ""] = /^(only )?(\w+)$/.exec(asks) ?? [];
  const { discord, ada, channel, events } = world;
  const { id } = discord.people.say(channel(place), ada, "look", { mentionBot: true });
  const found = () => events.find((event) => event.kind === "message" && event.messageId.endsWith(id));
  const event = await discord.until(found);
  return only === undefined ? event : alone(event);
}
