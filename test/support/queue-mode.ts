import { isOnRedis, keepBotsOnRedis } from "./bot-store.ts";

/** `QUEUE=redis npm test`: all bots of the tests have Redis. */
if (isOnRedis()) keepBotsOnRedis();
