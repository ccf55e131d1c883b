import type { SlackApi } from "./api.ts";
import { type MessagePlace, toMessageId } from "./ids.ts";
import type { Memory } from "./memory.ts";
import type { WholeWriter } from "./whole.ts";

type Part = Readonly<Record<string, unknown>>;

/** Takes a message of ours back, and the files that came with it: Slack would keep them. */
export type RemoveMessage = (place: MessagePlace, signal: AbortSignal) => Promise<void>;

export interface RemovalDeps {
  api: SlackApi;
  memory: Memory;
  whole: WholeWriter;
}

export function createRemoval({ api, memory, whole }: RemovalDeps): RemoveMessage {
  /** Of a message of an earlier run nobody knows whether it has files. */
  async function findFiles({ teamId, channelId, ts }: MessagePlace, signal: AbortSignal): Promise<readonly string[]> {
    const args = { channel: channelId, ts, oldest: ts, latest: ts, inclusive: true, limit: 1 };
    const { messages } = await api.call(teamId, "conversations.replies", args, signal);
    const message = toParts(messages).find((one) => one["ts"] === ts) ?? {};
    const shared = toParts(message["files"]).map(({ id }) => id);
    const shown = toParts(message["blocks"]).map(({ slack_file }) => (slack_file as Part | undefined)?.["id"]);
    return [...shared, ...shown].filter((id) => typeof id === "string");
  }

  return async (place, signal) => {
    const known = memory.files.get(toMessageId(place));
    // Best effort: what was asked for is that the message goes.
    const fileIds = known ?? (await findFiles(place, signal).catch(() => []));
    signal.throwIfAborted();
    await whole.remove(place, signal);
    for (const file of fileIds) await api.call(place.teamId, "files.delete", { file }, signal).catch(() => {});
  };
}

function toParts(value: unknown): Part[] {
  return Array.isArray(value) ? (value as Part[]) : [];
}
