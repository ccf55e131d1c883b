/**
 * A process that counts in the store of a Redis together with others: `node counting-process.ts URL NAME TIMES`. Each
 * time it notes an answer in one channel, and that somebody else likes the answer with the id "one". It begins with a
 * line on its input and says when it is ready, and when it is done.
 */
import { once } from "node:events";
import { pino } from "pino";
import { openDatabase } from "../../src/store/database.ts";
import { createStores } from "../../src/store/keyv.ts";
import { createTurnRecords } from "../../src/turn/record.ts";
import { createUsage } from "../../src/usage/usage.ts";

const [, , redisUrl, ownName = "", times = "0"] = process.argv;
const log = pino({ level: "silent" });
const { open, inTurn, counters, close } = createStores({ redisUrl, database: openDatabase(":memory:"), log });
const common = { open, inTurn, ttlMs: 60_000, log };
const usage = createUsage({ open, counters, log, now: Date.now });
const records = createTurnRecords(common);

await open("trial").get("connected");
process.stdout.write("ready\n");
await once(process.stdin, "data");
await Promise.all(
  Array.from({ length: Number(times) }, async (_, index) => {
    const personId = `${ownName}-${index}`;
    const by = { author: { id: personId }, reply: { platform: "test", channelId: "general" } };
    await usage.note(`answer of ${personId}`, by, { answers: 1 });
    // As when the process before had counted it, and died.
    await usage.note(`answer of ${personId}`, by, { answers: 1 });
    await records.rate({ id: "one", edition: 1 }, personId, "good");
  }),
);
await close();
process.stdout.write("done\n");
process.exit(0);
