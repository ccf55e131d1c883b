import type { Person } from "../../lab/slack-sim/people.ts";
import type { Channel } from "../../lab/slack-sim/world.ts";
import { startAdapter } from "../adapters/slack/stage.ts";
import { alone, WORD } from "../search/rights.ts";
import { startSlack } from "./slack.ts";

const LIMITS = { perMinute: { "conversations.info": 1_000, "conversations.members": 1_000 } };

/** Ada asks. Bob is a member, Gus a guest. Each channel has one message with its name. */
export async function startWorld() {
  const slack = await startSlack({ limits: LIMITS });
  slack.setSearchIndex("behind");
  const people = {
    ada: slack.user({ name: "Ada" }),
    bob: slack.user({ name: "Bob" }),
    gus: slack.user({ name: "Gus", isGuest: true }),
  };
  const { ada, bob } = people;
  const channels: Record<string, Channel> = {
    general: slack.channel({ name: "general", members: [ada, bob] }),
    open: slack.channel({ name: "open", members: [bob] }),
    hers: slack.channel({ name: "hers", kind: "private", members: [ada] }),
    both: slack.channel({ name: "both", kind: "private", members: [ada, bob] }),
    his: slack.channel({ name: "his", kind: "private", members: [bob] }),
    group: slack.channel({ name: "group", kind: "mpim", members: [ada, bob] }),
    direct: ada.direct(),
    hisDirect: bob.direct(),
  };
  const adapter = await startAdapter(slack);
  for (const [name, channel] of Object.entries(channels)) bob.say(channel, `${WORD} ${name}`);
  const channel = (name: string): Channel => channels[name] ?? fail(name);
  const leave = (who: Person, ...names: string[]) => {
    for (const name of names) channel(name).members.delete(who.id);
  };
  const join = (who: Person, ...names: string[]) => {
    for (const name of names) channel(name).members.add(who.id);
  };
  return { slack, ...people, channels, channel, leave, join, ...adapter };
}

export type World = Awaited<ReturnType<typeof startWorld>>;

/** A row of a table of rights. */
export interface Step {
  /** The place of the question; `only …`: only the asker sees the answer there. */
  asks: string;
  who?: "ada" | "gus";
  /** Happens before the question. */
  before?(world: World): void;
  /** Happens between the question and the answer. */
  meanwhile?(world: World): void;
}

function fail(name: string): never {
  throw new Error(`There is no ${name}.`);
}

/** Asks, and resolves to the event of the question. */
export async function ask(world: World, { asks, who = "ada" }: Step) {
  const [, only, place = ""] = /^(only )?(\w+)$/.exec(asks) ?? [];
  const person = world[who];
  const isDirect = place === "direct";
  const { ts } = isDirect ? person.dm("look") : person.mention(world.channel(place), "look");
  const found = () => world.events.find((event) => event.kind === "message" && event.messageId.endsWith(ts));
  const event = await world.slack.until(found, "the question");
  return only === undefined ? event : alone(event);
}
