import type { SlackApi } from "../api/client.ts";
import { type MessagePlace, toMessageId } from "../ids.ts";
import { readBrought } from "./blocks.ts";
import { readMessage } from "./lookup.ts";
import type { WholeWriter } from "./post-and-update.ts";
import type { Memory } from "./sink-state.ts";

/** Takes a message of ours back, and what came with it: Slack would keep its files. */
export type RemoveMessage = (place: MessagePlace, signal: AbortSignal) => Promise<void>;

export interface RemovalDeps {
  api: SlackApi;
  memory: Memory;
  whole: WholeWriter;
}

export function createRemoval({ api, memory, whole }: RemovalDeps): RemoveMessage {
  return async (place, signal) => {
    const known = memory.files.get(toMessageId(place));
    // Of a message of an earlier run nobody knows whether it has files.
    // Best effort: what was asked for is that the message goes.
    const { ids, sharedTs } =
      known ?? readBrought((await readMessage(api, place, signal).catch(() => undefined)) ?? {});
    signal.throwIfAborted();
    // The other one tells of it, so it goes last.
    if (sharedTs !== undefined) await whole.remove({ ...place, ts: sharedTs }, signal);
    await whole.remove(place, signal);
    for (const file of ids) await api.call(place.teamId, "files.delete", { file }, signal).catch(() => {});
  };
}
