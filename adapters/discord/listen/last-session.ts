import {
  type Client,
  GatewayDispatchEvents,
  type GatewayDispatchPayload,
  GatewayOpcodes,
  type GatewayReceivePayload,
} from "discord.js";
import type { Logger } from "pino";
import type { LastSession, LastSessionStore } from "../options.ts";
import { isDirect } from "./direct-channels.ts";

/** A session is resumed from an older place just as well: Discord tells more once more. */
const NOTED_EVERY_MS = 5_000;
/** If Discord does not answer in this time, only the conversations that are known are read for missed messages. */
const RESUME_MS = 4_000;
/** Ends a session for good. */
const NORMAL_CLOSE = 1_000;

export interface FollowOptions {
  token: string;
  store: LastSessionStore;
  /** Resolves to true where the session before this one is nobody's any more. */
  isInherited: Promise<boolean>;
  /** Milliseconds. */
  now(): number;
  log: Logger;
}

/**
 * Notes the session of a client that is not connected yet, for whoever comes after it. Resolves once it is connected, to
 * the direct conversations in which somebody wrote since the session before it broke off: Discord lists them nowhere, but
 * tells them to whoever resumes that session. Never rejects.
 */
export function followSession(client: Client, options: FollowOptions): Promise<readonly string[]> {
  const { store, now, log } = options;
  const missed = Promise.withResolvers<readonly string[]>();
  let own: LastSession | undefined;
  let hasBegun = false;
  let isReading = false;
  let notedAt = -Infinity;
  let notedId: string | undefined;

  /** A client that another one has followed leaves its note alone. */
  async function note(session: LastSession): Promise<void> {
    try {
      if (notedId === session.id && (await store.read())?.id !== session.id) return;
      await store.write(session);
      notedId = session.id;
    } catch (err) {
      log.debug({ err }, "how far the session has come could not be noted");
    }
  }

  /** The note of the session before is read once, before it is written over. */
  async function begin(session: LastSession): Promise<void> {
    if (!hasBegun) {
      hasBegun = true;
      isReading = true;
      missed.resolve(await readMissed(session.id, options));
      isReading = false;
    }
    if (!isReading) await note(own ?? session);
  }

  client.on("raw", (packet: GatewayDispatchPayload) => {
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

async function readMissed(ownId: string, { token, store, isInherited, log }: FollowOptions): Promise<string[]> {
  try {
    if (!(await isInherited)) return [];
    const last = await store.read();
    if (last === undefined || last.id === ownId) return [];
    const missed = await resume(last, token);
    log.debug({ conversations: missed.length }, "resumed the session before this one");
    return missed;
  } catch (err) {
    log.debug({ err }, "the session before this one could not be resumed");
    return [];
  }
}

/**
 * Takes a session up again, which is no new one to Discord's limits, and ends it. Resolves to the direct conversations
 * that were told in it; to none where it is over.
 */
function resume({ id, url, sequence }: LastSession, token: string): Promise<string[]> {
  const directs = new Set<string>();
  const { promise, resolve } = Promise.withResolvers<string[]>();
  const socket = new WebSocket(new URL("?v=10&encoding=json", url));
  const end = () => {
    clearTimeout(timer);
    socket.close(NORMAL_CLOSE);
    resolve([...directs]);
  };
  const timer = setTimeout(end, RESUME_MS);
  const send = (op: GatewayOpcodes, d: unknown) => socket.send(JSON.stringify({ op, d }));

  function hear(packet: GatewayReceivePayload): void {
    if (packet.op === GatewayOpcodes.Hello) send(GatewayOpcodes.Resume, { token, session_id: id, seq: sequence });
    else if (packet.op === GatewayOpcodes.Heartbeat) send(GatewayOpcodes.Heartbeat, sequence);
    else if (packet.op === GatewayOpcodes.InvalidSession || packet.op === GatewayOpcodes.Reconnect) end();
    else if (packet.op !== GatewayOpcodes.Dispatch) return;
    else if (packet.t === GatewayDispatchEvents.Resumed) end();
    else if (packet.t === GatewayDispatchEvents.MessageCreate && isDirect(packet.d)) directs.add(packet.d.channel_id);
  }

  socket.addEventListener("message", ({ data }) => {
    try {
      hear(JSON.parse(String(data)) as GatewayReceivePayload);
    } catch {
      end();
    }
  });
  for (const event of ["error", "close"]) socket.addEventListener(event, end);
  return promise;
}
