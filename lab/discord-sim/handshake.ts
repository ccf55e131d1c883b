import { z } from "zod";
import type { Clock } from "./clock.ts";
import { toGuildCreate, toUser } from "./payloads.ts";
import { createSession, INTENTS, type Line, type Session, shardOf } from "./sessions.ts";
import type { Violations } from "./violations.ts";
import type { World } from "./world.ts";

const HIGHEST_INTENT = 1 << 26;
const IDENTIFY = z.object({
  token: z.string(),
  intents: z.number(),
  shard: z.tuple([z.number(), z.number()]).default([0, 1]),
});
const RESUME = z.object({ token: z.string(), session_id: z.string(), seq: z.number() });

/** The developer portal's switches: the privileged intents, and whether strangers can add the bot to their servers. */
export interface Portal {
  isPublic: boolean;
  messageContent: boolean;
  members: boolean;
  presences: boolean;
}

export interface SessionLimits {
  /** Number of session starts until Discord revokes the bot's token. */
  remaining: number;
  maxConcurrency: number;
  /** Time in which shards with the same remainder by `maxConcurrency` can identify only once; 0 means no limit. */
  identifyWindowMs: number;
  /** How long a client can resume a session. */
  lifetimeMs: number;
}

export const DEFAULT_SESSIONS: SessionLimits = {
  remaining: 1000,
  maxConcurrency: 1,
  identifyWindowMs: 0,
  lifetimeMs: 5 * 60_000,
};

export interface HandshakeDeps {
  clock: Clock;
  world: World;
  violations: Violations;
  sessions: Map<string, Session>;
  onBegin(session: Session): void;
  portal: Portal;
  sessionLimits: SessionLimits;
  isToken(token: string): boolean;
  url(): string;
}

export interface Handshake {
  /** Starts a session on a socket, or closes the socket with Discord's reason. */
  identify(line: Line, data: unknown): Session | undefined;
  resume(line: Line, data: unknown): Session | undefined;
}

export function createHandshake(deps: HandshakeDeps): Handshake {
  const { clock, world, violations, sessions, portal, sessionLimits, isToken, url } = deps;
  const identifiedAtMs = new Map<number, number>();

  function isForbidden(intents: number): boolean {
    const needs = (intent: number, isOn: boolean) => (intents & intent) !== 0 && !isOn;
    return (
      needs(INTENTS.messageContent, portal.messageContent) ||
      needs(INTENTS.guildMembers, portal.members) ||
      needs(INTENTS.guildPresences, portal.presences)
    );
  }

  function isTooSoon(shardId: number): boolean {
    const key = shardId % sessionLimits.maxConcurrency;
    const last = identifiedAtMs.get(key) ?? -Infinity;
    if (clock.now() - last < sessionLimits.identifyWindowMs) return true;
    identifiedAtMs.set(key, clock.now());
    return false;
  }

  function welcome(session: Session): void {
    const guilds = [...world.guilds.values()].filter(
      ({ id, members }) => members.has(world.bot.id) && shardOf(id, session.shard[1]) === session.shard[0],
    );
    session.dispatch("READY", {
      v: 10,
      user: { ...toUser(world.bot), verified: true, mfa_enabled: true, email: null, flags: 0 },
      guilds: guilds.map(({ id }) => ({ id, unavailable: true })),
      private_channels: [],
      session_id: session.id,
      resume_gateway_url: url(),
      shard: session.shard,
      application: { id: world.bot.id, flags: toApplicationFlags(portal) },
    });
    for (const guild of guilds) {
      session.deliver({
        type: "GUILD_CREATE",
        guildId: guild.id,
        intent: INTENTS.guilds,
        payload: () => toGuildCreate(guild, world),
      });
    }
  }

  return {
    identify(line, data) {
      const { data: hello } = IDENTIFY.safeParse(data);
      if (hello === undefined) return refuseLine(line, 4002, "Error while decoding payload.");
      if (!isToken(hello.token)) return refuseLine(line, 4004, "Authentication failed.");
      const [id, count] = hello.shard;
      if (!(id >= 0 && id < count)) return refuseLine(line, 4010, "Invalid shard.");
      if (!(hello.intents >= 0 && hello.intents < HIGHEST_INTENT)) return refuseLine(line, 4013, "Invalid intent(s).");
      if (isForbidden(hello.intents)) return refuseLine(line, 4014, "Disallowed intent(s).");
      if (sessionLimits.remaining <= 0) {
        violations.record("gateway-abuse", "A session was started when none was left; Discord takes the token away.");
        return refuseLine(line, 4004, "Authentication failed.");
      }
      if (isTooSoon(id)) {
        violations.record("early-identify", `A session of shard ${id} was begun too soon after another one.`);
        line.send({ op: 9, d: false });
        return undefined;
      }
      sessionLimits.remaining -= 1;
      const session = createSession([id, count], hello.intents);
      sessions.set(session.id, session);
      deps.onBegin(session);
      session.attach(line);
      welcome(session);
      return session;
    },
    resume(line, data) {
      const { data: hello } = RESUME.safeParse(data);
      if (hello === undefined) return refuseLine(line, 4002, "Error while decoding payload.");
      if (!isToken(hello.token)) return refuseLine(line, 4004, "Authentication failed.");
      const session = sessions.get(hello.session_id);
      const ageMs = clock.now() - (session?.detachedAtMs ?? clock.now());
      if (session === undefined || ageMs > sessionLimits.lifetimeMs) {
        if (session !== undefined) sessions.delete(session.id);
        line.send({ op: 9, d: false });
        return undefined;
      }
      if (hello.seq > session.lastSequence) return refuseLine(line, 4007, "Invalid seq.");
      session.line?.close(4000, "Resumed elsewhere.");
      session.attach(line);
      session.replay(hello.seq);
      session.dispatch("RESUMED", {});
      return session;
    },
  };
}

/** Returns the application's flags for the portal's switches. A bot in few guilds has the `LIMITED` flags. */
export function toApplicationFlags({ messageContent, members, presences }: Portal): number {
  return (presences ? 1 << 13 : 0) | (members ? 1 << 15 : 0) | (messageContent ? 1 << 19 : 0);
}

function refuseLine(line: Line, code: number, reason: string): undefined {
  line.close(code, reason);
}
