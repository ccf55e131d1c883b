import type { Logger } from "pino";
import { z } from "zod";
import { hearChannel } from "./redis-channel.ts";
import { createListeningClient, type RedisConnection } from "./redis-connection.ts";
import { createStoredParser } from "./values.ts";

/** Announces values to all processes, present and future: the last one of each key, for as long as it holds. */
export interface Board<T> {
  /** Best effort: never throws. `forMs` is how long it holds from now on; 0: no longer. */
  tell(key: string, value: T, forMs: number): void;
  /** Hears announcements of others, past and future. Connects; never rejects. */
  listen(onTold: (key: string, value: T, forMs: number) => void): Promise<void>;
  /** Resolves to true for the first process that claims something within `forMs`; also where nobody can tell. */
  claim(what: string, forMs: number): Promise<boolean>;
  close(): void;
}

export interface BoardOptions<T> {
  connection: RedisConnection;
  /** Describes the values: what other processes announce and is not so is ignored. */
  schema: z.ZodType<T>;
  /** Names the board; also the key and the channel in Redis. */
  place: string;
  /** Distinguishes the processes. */
  by: string;
  /** Milliseconds by a clock that all processes share. */
  now(): number;
  log: Logger;
}

const toAnnouncement = <T>(value: z.ZodType<T>) =>
  z.object({ by: z.string(), key: z.string(), value, until: z.number() });

/** Most announcements that have expired, and are taken off the board with one that is put there. */
const MAX_TAKEN_OFF = 100;

const TELL = `
for _, key in ipairs(redis.call('ZRANGE', KEYS[2], '-inf', '(' .. ARGV[4], 'BYSCORE', 'LIMIT', 0, ARGV[5])) do
  redis.call('HDEL', KEYS[1], key)
  redis.call('ZREM', KEYS[2], key)
end
if tonumber(ARGV[3]) > 0 then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
  redis.call('ZADD', KEYS[2], ARGV[3] + ARGV[4], ARGV[1])
else
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('ZREM', KEYS[2], ARGV[1])
end
return redis.call('PUBLISH', KEYS[1], ARGV[2])`;

export function createBoard<T>({ connection, schema, place, by, now, log }: BoardOptions<T>): Board<T> {
  const { client, run } = connection;
  const listening = createListeningClient(connection);
  const announcement = toAnnouncement(schema);
  const parse = createStoredParser(announcement, place, log);

  return {
    tell(key, value, forMs) {
      const text = JSON.stringify({ by, key, value, until: now() + forMs } satisfies z.input<typeof announcement>);
      const times = [Math.ceil(forMs), now(), MAX_TAKEN_OFF].map(String);
      const options = { keys: [place, `${place}:ends`], arguments: [key, text, ...times] };
      run(() => client.eval(TELL, options)).catch((err: unknown) =>
        log.debug({ err }, "an announcement to other processes failed"),
      );
    },
    async listen(onTold) {
      const hear = (told: z.output<typeof announcement>) => {
        if (told.by !== by) onTold(told.key, told.value, Math.max(0, told.until - now()));
      };
      const readAll = async () => {
        for (const told of (await run(() => client.hVals(place))).map(parse)) if (told !== undefined) hear(told);
      };
      try {
        await listening.connect();
        await hearChannel({ client: listening, channel: place, parse, log }, hear);
        // Reads the values announced earlier, or while the connection was lost.
        listening.on("ready", () => void readAll().catch(() => {}));
        await readAll();
      } catch (err) {
        log.warn({ err, place }, "the announcements of other processes could not be read");
      }
    },
    async claim(what, forMs) {
      const options = { condition: "NX", expiration: { type: "PX", value: Math.ceil(forMs) } } as const;
      try {
        return (await run(() => client.set(`${place}:claims:${what}`, by, options))) !== null;
      } catch (err) {
        log.debug({ err }, "a claim among processes failed");
        return true;
      }
    },
    close() {
      if (listening.isOpen) listening.destroy();
    },
  };
}
