import { createDiscord } from "../discord-sim/simulator.ts";
import {
  allAnswers,
  DISTURBING,
  discordBreaks,
  isAnswer,
  openDiscordPlace,
  TROUBLES,
  toShown,
} from "./discord-place.ts";
import type { Call, Stage, StagePlan } from "./stage.ts";

/**
 * "Shards with the same rate limit key may identify once in five seconds."
 * https://docs.discord.com/developers/events/gateway#sharding
 */
const IDENTIFY_WINDOW_MS = 5_000;

const NO_WRITE = /^GET|\/reactions\//;

export async function openDiscordStage({ places, threads, isAlone }: StagePlan): Promise<Stage> {
  const discord = await createDiscord({ sessions: { identifyWindowMs: IDENTIFY_WINDOW_MS } });
  const guild = discord.addGuild();
  const rooms = places.map((place) => {
    const people = ["Ada", "Ben"].map((name) => discord.addUser(name, guild));
    return { people, place: openDiscordPlace(discord, { place, guild, people }) };
  });

  /**
   * True for a message in a direct conversation that Discord never reported to any session. Discord does not list such
   * conversations, so the bot cannot find this one.
   */
  function isUnreachable(channelId: string, messageId: string): boolean {
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
      // Reading a message or changing its reactions does not write to the message.
      messageId: message === undefined || NO_WRITE.test(route) ? undefined : `discord:${place}:${message}`,
      status,
      retryAfterMs,
      words: wordsOf(body),
    };
  }

  return {
    origin: new URL(discord.apiUrl).origin,
    env: (origin) => ({ DISCORD_TOKEN: discord.token, DISCORD_API_URL: `${origin}/api`, DISCORD_THREADS: threads }),
    install: async () => {},
    places: rooms.map(({ place }) => place),
    troubles: Object.keys(TROUBLES).filter((name) => isAlone || !DISTURBING.has(name)),
    disturbing: DISTURBING,
    draw(place, text) {
      const ada = rooms[place]?.people[0];
      if (ada === undefined) return () => undefined;
      const interaction = discord.people.command(discord.openDm(ada), ada, "imagine", { prompt: text });
      return () => (interaction.acknowledgedAs === undefined ? undefined : "");
    },
    shown: () => allAnswers(discord).filter(isAnswer).map(toShown),
    calls: () => discord.requests.filter(({ route }) => route.includes("/messages")).map(toCall),
    breaks: () => discordBreaks(discord),
    // Discord has no acknowledgements, but the bot later reads the messages that no session received.
    deliveryOf({ id }) {
      const [, channelId = "", messageId = id] = id.split(":");
      const sessions = discord.gateway.everySession.filter(({ toldIds }) => toldIds.has(messageId));
      const sessionIds = new Set(sessions.map((session) => session.id));
      return {
        deliveredAtMs: undefined,
        acknowledgedAtMs: undefined,
        isGivenUp: isUnreachable(channelId, messageId),
        sessionIds,
      };
    },
    // A process that starts to listen reads the messages that it missed.
    isSettled: () => discord.gateway.sessions.some(({ isAttached }) => isAttached),
    secrets: [discord.token],
    close: discord.close,
  };
}

function wordsOf(body: unknown): string {
  const content = (body as { content?: unknown } | undefined)?.content;
  return typeof content === "string" ? content : JSON.stringify(body ?? "");
}
