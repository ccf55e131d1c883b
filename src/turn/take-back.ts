import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import type { History } from "../history/history.ts";
import type { Adapter } from "../port/adapter.ts";
import { toNonce } from "../port/ids.ts";
import { PROBE } from "../reply/messages.ts";
import { callPlatform, isRefusal } from "../reply/platform-call.ts";
import type { TurnRecord, TurnRecords } from "./record.ts";

/** Between two looks at whether whoever has taken an answer over has ended it. */
const LOOK_MS = 1_000;
/** With that pause in between, longer than an answer is written. */
const MAX_LOOKS = 900;

export interface TakeBackDeps {
  records: Pick<TurnRecords, "save" | "eraseGiven">;
  history: Pick<History, "remove">;
  adapterOf(platform: string): Pick<Adapter, "sink">;
  log: Logger;
}

/** Removes what was written for a turn that nobody asks for any more, and erases it. Rejects when that has to be tried again. */
export async function takeBack(deps: TakeBackDeps, record: TurnRecord): Promise<void> {
  const { history, records } = deps;
  if (record.attempts === 0 && record.posted.length === 0) return;
  // Found before the record is saved: a later try, when the platform knows the nonce no more, would post once again.
  await findPosted(deps, record);
  await records.save(record);
  await removePosted(deps, record);
  await history.remove(record.id);
  // Without an entry in the history no erasure finds them again.
  await records.eraseGiven(record.id);
  for (const field of ["said", "waits", "feedback", "reasons"] as const) delete record[field];
  await records.save({ ...record, posted: [], phase: "final", canRetry: false });
}

export interface StraysDeps extends Pick<TakeBackDeps, "adapterOf" | "log"> {
  records: Pick<TurnRecords, "load">;
}

/**
 * Removes what this process has posted of an answer without whoever took that over knowing of it: a call that was under
 * way when a process stood still is made when it goes on, after the other one has looked for it. It may still be found
 * until the answer has ended, which is waited for. Best effort; never rejects.
 */
export async function removeStrays(deps: StraysDeps, record: TurnRecord, lookMs: number = LOOK_MS): Promise<void> {
  for (let looks = 0; looks < MAX_LOOKS; looks++) {
    try {
      const stored = await deps.records.load(record.id);
      const strays = record.posted.filter((id) => stored?.posted.includes(id) !== true);
      if (strays.length === 0) return;
      if (stored?.phase === "final") return await removePosted(deps, { ...record, posted: strays, isPosting: false });
    } catch (err) {
      deps.log.debug({ err, turnId: record.id }, "a message that is nobody's could not be looked up or removed");
    }
    await sleep(lookMs, undefined, { ref: false });
  }
}

/** Removes the messages of a reply, the last one first. Rejects when that has to be tried again. */
export async function removePosted(deps: Pick<TakeBackDeps, "adapterOf" | "log">, record: TurnRecord): Promise<void> {
  const { adapterOf, log } = deps;
  await findPosted(deps, record);
  const sink = adapterOf(record.reply.platform).sink(record.reply);
  for (const id of record.posted.toReversed()) {
    try {
      await callPlatform((signal) => sink.remove(id, signal));
    } catch (error) {
      if (!isRefusal(error)) throw error;
      log.warn({ err: error, turnId: record.id }, "a message of a cancelled answer could not be removed");
    }
  }
}

/** Names the message of a post, where it is not known whether that was carried out, by making the post again. */
async function findPosted({ adapterOf }: Pick<TakeBackDeps, "adapterOf">, record: TurnRecord): Promise<void> {
  if (!record.isPosting) return;
  const sink = adapterOf(record.reply.platform).sink(record.reply);
  try {
    const posted = await callPlatform((signal) => sink.post(PROBE, toNonce(record), signal));
    record.posted.push(posted.id);
  } catch (error) {
    if (!isRefusal(error)) throw error;
  }
  record.isPosting = false;
}
