import { createDiscord } from "../test/simulators/discord/simulator.ts";
import {
  allAnswers,
  discordBreaks,
  isAnswer,
  openDiscordPlace,
  TROUBLES,
  toShown,
} from "../test/support/fault-loop/discord-world.ts";
import type { PlaceKind } from "./plan.ts";
import type { Call, Stage } from "./stage.ts";

/** "Shards with the same rate limit key may identify once in five seconds." https://docs.discord.com/developers/events/gateway#sharding */
const IDENTIFY_WINDOW_MS = 5_000;
/** Those that leave no answer to be judged are no part of this. */
const DISTURBING = new Set(["blind", "mute", "gone"]);

const NO_WRITE = /^GET|\/reactions\//;

export async function openDiscordStage(kinds: readonly PlaceKind[]): Promise<Stage> {
  const discord = await createDiscord({ sessions: { identifyWindowMs: IDENTIFY_WINDOW_MS } });
  const guild = discord.addGuild();
  const rooms = kinds.map((place) => {
    const people = ["Ada", "Ben"].map((name) => discord.addUser(name, guild));
    return { people, place: openDiscordPlace(discord, { place, guild, people }) };
  });

  /** Nobody can know of a direct conversation of which no session was ever told: it is listed nowhere. */
  function isUntold(channelId: string, messageId: string): boolean {
    const { untoldIds, everySession } = discord.gateway;
    const room = discord.places().find(({ id }) => id === channelId);
    if (room?.kind !== "dm" || !untoldIds.has(messageId)) return false;
    return !discord.messages(room).some(({ id }) => everySession.some(({ toldIds }) => toldIds.has(id)));
  }

  function toCall(request: (typeof discord.requests)[number]): Call {
    const { route, params, host, atMs, endedAtMs, status = 0, retryAfterMs, body, madeId } = request;
    const { message = madeId } = params;
    const place = params["channel"] ?? `${params["webhook"]}:${params["token"]}`;
    return {
      atMs,
      endedAtMs,
      host,
      method: route,
      budget: `${route} ${place}`,
      // Whoever reads a message does not write it, nor who takes the sign of a wait off the question of a person.
      messageId: message === undefined || NO_WRITE.test(route) ? undefined : `discord:${place}:${message}`,
      status,
      retryAfterMs,
      words: wordsOf(body),
    };
  }

  return {
    origin: new URL(discord.apiUrl).origin,
    env: (origin) => ({ DISCORD_TOKEN: discord.token, DISCORD_API_URL: `${origin}/api` }),
    install: async () => {},
    places: rooms.map(({ place }) => place),
    troubles: Object.keys(TROUBLES).filter((name) => !DISTURBING.has(name)),
    draw(place, text) {
      const ada = rooms[place]?.people[0];
      if (ada === undefined) return () => false;
      const interaction = discord.people.command(discord.openDm(ada), ada, "imagine", { prompt: text });
      return () => interaction.acknowledgedAs !== undefined;
    },
    shown: () => allAnswers(discord).filter(isAnswer).map(toShown),
    calls: () => discord.requests.filter(({ route }) => route.includes("/messages")).map(toCall),
    breaks: () => discordBreaks(discord),
    // Nothing is acknowledged, and what no session was told is read later.
    told({ id }) {
      const [, channelId = "", messageId = id] = id.split(":");
      const told = discord.gateway.everySession.filter(({ toldIds }) => toldIds.has(messageId));
      const sessionIds = new Set(told.map((session) => session.id));
      return {
        toldAtMs: undefined,
        acknowledgedAtMs: undefined,
        isGivenUp: isUntold(channelId, messageId),
        sessionIds,
      };
    },
    // Whoever begins to hear reads then what was said while nobody did.
    isSettled: () => discord.gateway.sessions.some(({ isAttached }) => isAttached),
    secrets: [discord.token],
    close: discord.close,
  };
}

function wordsOf(body: unknown): string {
  const content = (body as { content?: unknown } | undefined)?.content;
  return typeof content === "string" ? content : JSON.stringify(body ?? "");
}
