import { isOnRedis, keepBotsOnRedis } from "./bot-store.ts";

/** `npm run test:redis`: all bots of the tests have Redis. */
if (isOnRedis) keepBotsOnRedis();
