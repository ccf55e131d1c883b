import { afterEach, beforeAll } from "vitest";
import { closeBotsOnRedis, putBotsOnRedis } from "../../lab/support/bot-store.ts";

/** Gives the bots of all tests in the caller's scope a separate Redis. */
export function keepBotsOnRedis(): void {
  beforeAll(putBotsOnRedis);
  afterEach(closeBotsOnRedis);
}
