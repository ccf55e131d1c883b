import type { Logger } from "pino";
import type { RedisClient } from "./redis-connection.ts";

export interface ChannelOptions<T> {
  client: RedisClient;
  channel: string;
  /** Undefined for an unreadable message, which is dropped. */
  parse(text: string): T | undefined;
  log: Logger;
}

/**
 * Calls `onTold` with each readable message of a channel. Logs errors of `onTold`, which would end the subscription.
 */
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
