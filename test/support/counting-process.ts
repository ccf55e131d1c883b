/**
 * A process that counts in a Redis store together with other processes: `node counting-process.ts URL NAME TIMES`. Each
 * time, it records an answer in one channel, and another person's rating of the answer with the id "one". It starts
 * when it reads a line from its input, and reports when it is ready and when it is done.
 */

import { once } from "node:events";
import { pino } from "pino";
import { noFiles } from "../../lab/support/picture-turn.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { openDatabase } from "../../src/store/database.ts";
import { createStores } from "../../src/store/keyv.ts";
import { createTurnRecords } from "../../src/turn/records.ts";
import { createUsage } from "../../src/usage/usage.ts";

const [, , redisUrl, ownName = "", times = "0"] = process.argv;
const log = pino({ level: "silent" });
const { open, inTurn, counters, close } = createStores({ redisUrl, database: openDatabase(":memory:"), log }, NO_RIGHT);
const common = { open, inTurn, ttlMs: 60_000, log };
const usage = createUsage({ counters, log, now: Date.now });
const records = createTurnRecords({ ...common, files: noFiles });

await open("trial").get("connected");
process.stdout.write("ready\n");
await once(process.stdin, "data");
await Promise.all(
  Array.from({ length: Number(times) }, async (_, index) => {
    const personId = `${ownName}-${index}`;
    const by = { author: { id: personId }, reply: { platform: "test", channelId: "general" } };
    await usage.note(`answer of ${personId}`, by, { answers: 1 });
    // The state if the previous process had counted it and died.
    await usage.note(`answer of ${personId}`, by, { answers: 1 });
    await records.rate({ id: "one", edition: 1 }, personId, "good");
  }),
);
await close();
process.stdout.write("done\n");
process.exit(0);
