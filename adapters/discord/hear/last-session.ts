import { GatewayDispatchEvents } from "discord.js";
import type { Logger } from "pino";
import type { LastSession, LastSessionStore } from "../options.ts";
import { isDirect } from "./direct-channels.ts";
import type { GatewayClient } from "./transport.ts";

/** How often to store the position. When a session is resumed from an older one, Discord repeats events. */
const NOTED_EVERY_MS = 5_000;

export interface FollowOptions {
  store: LastSessionStore;
  /** Resolves to true if no other process holds the previous session. */
  isInherited: Promise<boolean>;
  /** Milliseconds. */
  now(): number;
  log: Logger;
}

/**
 * Stores the session of a client that is not connected yet, so that the next process can resume it. Also resumes the
 * previous session: only its events show in which direct conversations messages were missed. Resolves to these
 * conversations once connected. Never rejects.
 */
export function followSession(client: GatewayClient, options: FollowOptions): Promise<readonly string[]> {
  const { store, now, log } = options;
  const missed = Promise.withResolvers<readonly string[]>();
  let own: LastSession | undefined;
  let hasStarted = false;
  let isReading = false;
  let notedAt = -Infinity;
  let notedId: string | undefined;

  /** Stores the session's position, unless another client has stored its session since. */
  async function note(session: LastSession): Promise<void> {
    try {
      if (notedId === session.id && (await store.read())?.id !== session.id) return;
      await store.write(session);
      notedId = session.id;
    } catch (err) {
      log.debug({ err }, "could not store the position of the session");
    }
  }

  /** Reads the record of the previous session once, before it is overwritten. */
  async function begin(session: LastSession): Promise<void> {
    if (!hasStarted) {
      hasStarted = true;
      isReading = true;
      missed.resolve(await findMissed(client, session.id, options));
      isReading = false;
    }
    if (!isReading) await note(own ?? session);
  }

  client.onEvent((packet) => {
    if (packet.t === GatewayDispatchEvents.Ready) {
      own = { id: packet.d.session_id, url: packet.d.resume_gateway_url, sequence: packet.s };
      notedAt = now();
      void begin(own);
    } else if (own !== undefined) {
      own = { ...own, sequence: packet.s };
      if (isReading || now() < notedAt + NOTED_EVERY_MS) return;
      notedAt = now();
      void note(own);
    }
  });
  return missed.promise;
}

/** Resolves to the direct conversations whose messages the previous session missed; empty if that session has ended. */
async function findMissed(
  client: GatewayClient,
  ownId: string,
  { store, isInherited, log }: FollowOptions,
): Promise<string[]> {
  const directs = new Set<string>();
  try {
    const last = (await isInherited) ? await store.read() : undefined;
    if (last === undefined || last.id === ownId) return [];
    await client.readMissed(last, ({ t: type, d: data }) => {
      if (type === GatewayDispatchEvents.MessageCreate && isDirect(data)) directs.add(data.channel_id);
    });
    log.debug({ conversations: directs.size }, "read the events of the previous session");
  } catch (err) {
    log.debug({ err }, "could not read the previous session");
  }
  return [...directs];
}
