import type { Logger } from "pino";
import type { RedisClient } from "./redis-connection.ts";

export interface ChannelOptions<T> {
  /** A client from `createListeningClient`. */
  client: RedisClient;
  channel: string;
  /** Undefined for a message that it cannot read, which is ignored: see `createStoredParser`. */
  parse(text: string): T | undefined;
  log: Logger;
}

/** Hears what other processes publish on a channel. An error in `onTold` is logged: in the client it would end all hearing. */
export async function hearChannel<T>(
  { client, channel, parse, log }: ChannelOptions<T>,
  onTold: (told: T, text: string) => void,
): Promise<void> {
  await client.subscribe(channel, (text) => {
    try {
      const told = parse(text);
      if (told !== undefined) onTold(told, text);
    } catch (err) {
      log.error({ err, channel }, "a message from another process could not be handled");
    }
  });
}
