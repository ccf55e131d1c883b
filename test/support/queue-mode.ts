import { isOnRedis } from "../../lab/support/bot-store.ts";
import { keepBotsOnRedis } from "./bots-on-redis.ts";

/** With `npm run test:redis`, all bots in the tests use Redis. */
if (isOnRedis) keepBotsOnRedis();
