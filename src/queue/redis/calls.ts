import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { z } from "zod";
import type { KnownCall } from "../../port/pace.ts";
import { hearChannel } from "../../store/redis-channel.ts";
import { createListeningClient, type RedisConnection } from "../../store/redis-connection.ts";
import { createStoredParser } from "../../store/values.ts";
import { KEYS } from "./keys.ts";

/** No limit that is known counts a call for longer. */
const KEPT_MS = 90_000;
/** More than what all limits of one budget allow within that time. */
const MAX_KEPT_CALLS = 400;

/**
 * The calls that processes make against the limits they share, noted as each begins: whoever writes next in a workspace
 * or channel goes on where the process before it was, also when that one was killed.
 */
export interface SharedCalls {
  /** Notes a call that begins here. `call.sentAt` is by this process's monotonic clock. Best effort: never throws. */
  note(key: string, call: KnownCall): void;
  /**
   * Learns what others have made against this limit, and hears what they make from then on. Resolves when nothing is
   * missed any more, to what ends that; rejects while Redis is away.
   */
  open(key: string): Promise<() => void>;
  close(): void;
}

export interface SharedCallsOptions {
  connection: RedisConnection;
  /** Milliseconds by a clock that all processes share. */
  now(): number;
  /** Hears of calls that other processes have made. */
  onHeard(key: string, calls: readonly KnownCall[]): void;
  log: Logger;
}

const noted = z.object({
  by: z.string(),
  kind: z.enum(["post", "edit", "final"]),
  room: z.string(),
  isFallback: z.boolean(),
  /** Milliseconds of the shared clock. */
  at: z.number(),
  refusedForMs: z.number().exactOptional(),
});

type Noted = z.infer<typeof noted>;

const NOTE = `
redis.call('RPUSH', KEYS[1], ARGV[1])
redis.call('LTRIM', KEYS[1], -tonumber(ARGV[2]), -1)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return redis.call('PUBLISH', KEYS[1], ARGV[1])`;

export function createSharedCalls({ connection, now, onHeard, log }: SharedCallsOptions): SharedCalls {
  const { client, run } = connection;
  const by = randomUUID();
  const listening = createListeningClient(connection);
  const parse = createStoredParser(noted, KEYS.calls(""), log);
  let connecting: Promise<unknown> | undefined;
  /** Users of each key in this process; `known` resolves when its past calls were read. */
  const opened = new Map<string, { count: number; known: Promise<void> }>();
  /** The texts heard of each key, and the time it was left. */
  const heard = new Map<string, { texts: Set<string>; leftAt: number }>();

  const toOwnClock = (at: number): number => performance.now() - (now() - at);

  function toKnown({ kind, room, isFallback, at, refusedForMs }: Noted): KnownCall {
    const known = { kind, room, isFallback, sentAt: toOwnClock(at) };
    return refusedForMs === undefined ? known : { ...known, refusedForMs };
  }

  function hear(key: string, texts: readonly string[]): void {
    const known = heard.get(key) ?? { texts: new Set(), leftAt: Number.POSITIVE_INFINITY };
    heard.set(key, known);
    const fresh = texts.filter((text) => !known.texts.has(text));
    for (const text of fresh) known.texts.add(text);
    for (const oldest of known.texts) {
      if (known.texts.size <= MAX_KEPT_CALLS) break;
      known.texts.delete(oldest);
    }
    const calls = fresh
      .flatMap((text) => parse(text) ?? [])
      .filter((noted) => noted.by !== by && noted.at > now() - KEPT_MS)
      .map(toKnown);
    if (calls.length > 0) onHeard(key, calls);
  }

  async function learn(key: string): Promise<void> {
    connecting ??= listening.connect();
    await connecting;
    const channel = { client: listening, channel: KEYS.calls(key), parse, log };
    await run(() => hearChannel(channel, (_, text) => hear(key, [text])), listening);
    const texts = await run(() => client.lRange(KEYS.calls(key), 0, -1));
    hear(key, texts);
    // Texts that are no longer in the list are never told again.
    heard.set(key, { texts: new Set(texts), leftAt: Number.POSITIVE_INFINITY });
  }

  function leave(key: string): void {
    const entry = opened.get(key);
    if (entry === undefined) return;
    entry.count -= 1;
    if (entry.count > 0) return;
    opened.delete(key);
    for (const [other, { leftAt }] of heard) if (leftAt < now() - KEPT_MS) heard.delete(other);
    const known = heard.get(key);
    if (known !== undefined) known.leftAt = now();
    listening.unsubscribe(KEYS.calls(key)).catch(() => {});
  }

  return {
    note(key, { sentAt, ...call }) {
      const noted: Noted = { ...call, by, at: now() - (performance.now() - sentAt) };
      const options = {
        keys: [KEYS.calls(key)],
        arguments: [JSON.stringify(noted), String(MAX_KEPT_CALLS), String(KEPT_MS)],
      };
      run(() => client.eval(NOTE, options)).catch((err: unknown) => log.debug({ err }, "a call could not be noted"));
    },
    async open(key) {
      const entry = opened.get(key) ?? { count: 0, known: learn(key) };
      opened.set(key, entry);
      entry.count += 1;
      try {
        await entry.known;
      } catch (error) {
        leave(key);
        throw error;
      }
      return () => leave(key);
    },
    close() {
      if (listening.isOpen) listening.destroy();
    },
  };
}
