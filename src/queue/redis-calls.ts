import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import type { KnownCall } from "../port/pace.ts";
import { createListeningClient, type RedisConnection } from "../store/redis-connection.ts";
import { KEYS } from "./redis-keys.ts";

/** No limit that is known counts a call for longer. */
const KEPT_MS = 90_000;
/** More than what all limits of one budget allow within that time. */
const MAX_KEPT = 400;

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
  /** Other processes have made these calls. */
  onHeard(key: string, calls: readonly KnownCall[]): void;
  log: Logger;
}

interface Noted extends Omit<KnownCall, "sentAt"> {
  by: string;
  /** By the shared clock. */
  at: number;
}

const NOTE = `
redis.call('RPUSH', KEYS[1], ARGV[1])
redis.call('LTRIM', KEYS[1], -tonumber(ARGV[2]), -1)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return redis.call('PUBLISH', KEYS[1], ARGV[1])`;

export function createSharedCalls({ connection, now, onHeard, log }: SharedCallsOptions): SharedCalls {
  const { client, run } = connection;
  const by = randomUUID();
  const listening = createListeningClient(connection);
  let connecting: Promise<unknown> | undefined;
  /** How many need it here, and when everything is known of it. */
  const opened = new Map<string, { count: number; known: Promise<void> }>();
  /** Up to when calls of others were heard, by the shared clock. */
  const heardUntil = new Map<string, number>();

  const toOwnClock = (at: number): number => performance.now() - (now() - at);

  function hear(key: string, texts: readonly string[], since = 0): void {
    const calls = texts
      .map((text) => JSON.parse(text) as Noted)
      .filter((noted) => noted.by !== by && noted.at > Math.max(since, now() - KEPT_MS))
      .map(({ at, by: _, ...call }) => ({ ...call, sentAt: toOwnClock(at) }));
    if (calls.length > 0) onHeard(key, calls);
  }

  async function learn(key: string): Promise<void> {
    connecting ??= listening.connect();
    await connecting;
    const early: string[] = [];
    let isLearnt = false;
    await run(() =>
      listening.subscribe(KEYS.calls(key), (text) => {
        if (isLearnt) hear(key, [text]);
        else early.push(text);
      }),
    );
    const texts = await run(() => client.lRange(KEYS.calls(key), 0, -1));
    hear(key, [...new Set([...texts, ...early])], heardUntil.get(key));
    isLearnt = true;
  }

  function leave(key: string): void {
    const entry = opened.get(key);
    if (entry === undefined) return;
    entry.count -= 1;
    if (entry.count > 0) return;
    opened.delete(key);
    for (const [other, at] of heardUntil) if (at < now() - KEPT_MS) heardUntil.delete(other);
    heardUntil.set(key, now());
    listening.unsubscribe(KEYS.calls(key)).catch(() => {});
  }

  return {
    note(key, { sentAt, ...call }) {
      const noted: Noted = { ...call, by, at: now() - (performance.now() - sentAt) };
      const options = {
        keys: [KEYS.calls(key)],
        arguments: [JSON.stringify(noted), String(MAX_KEPT), String(KEPT_MS)],
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
