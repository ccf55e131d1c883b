import { silent } from "../../lab/support/log.ts";
import { createHistory } from "../../src/history/history.ts";
import type { HistoryEntry } from "../../src/history/record.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { openDatabase } from "../../src/store/database.ts";
import { createStores } from "../../src/store/keyv.ts";

/**
 * A process that appends to three conversations until it is killed: `node history-writer.ts FILE ROUND`. It writes one
 * line per entry, `{conversation} {id}`, but only after the entry was acknowledged.
 */
const [, , path = "", round = ""] = process.argv;
const database = openDatabase(path);
const { open, inTurn } = createStores({ redisUrl: undefined, database, log: silent }, NO_RIGHT);
const history = createHistory({ open, inTurn, ttlMs: 3_600_000, log: silent, now: Date.now });
process.stdout.write("ready\n");

async function converse(conversation: string): Promise<never> {
  for (let turn = 0; ; turn++) {
    const id = `${conversation}-${round}-${turn}`;
    const question: HistoryEntry = {
      id: `${id}-q`,
      at: turn,
      author: { platform: "test", id: conversation, name: "Ada" },
      messages: [{ role: "user", content: `${id} ${"?".repeat(turn % 2_000)}` }],
    };
    await history.append(conversation, question);
    process.stdout.write(`${conversation} ${question.id}\n`);
    const call = { id: "c", type: "function" as const, function: { name: "clock", arguments: "{}" } };
    const answer: HistoryEntry = {
      id: `${id}-a`,
      at: turn,
      askedBy: { platform: "test", id: conversation },
      messages: [
        { role: "assistant", content: "", tool_calls: [call] },
        { role: "tool", tool_call_id: "c", content: "12:00" },
        { role: "assistant", content: "noon".repeat(turn % 500) },
      ],
    };
    // First the unfinished answer and then the complete one, as a turn does.
    await history.append(conversation, { ...answer, partial: true }, [`${id}-p1`]);
    await history.append(conversation, answer, [`${id}-p2`]);
    process.stdout.write(`${conversation} ${answer.id}\n`);
    // Lets the other conversations continue in between.
    await new Promise((resolve) => setImmediate(resolve));
  }
}

await Promise.all(["red", "green", "blue"].map(converse));
