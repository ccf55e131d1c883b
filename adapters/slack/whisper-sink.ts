import type { Draft, OutboundFile, Posted, ReplySink } from "../../src/adapter.ts";
import type { SlackExtra } from "./address.ts";
import type { SlackApi } from "./api.ts";
import { guarded } from "./failures.ts";
import { PLATFORM, readMessageId, toFingerprint } from "./ids.ts";
import { LIMITS } from "./limits.ts";
import type { ReplyPlace } from "./lookup.ts";
import type { Memory } from "./memory.ts";
import { createRemoval } from "./removal.ts";
import { createStatus } from "./status.ts";
import type { Uploader } from "./upload.ts";
import { createWhisperWriter } from "./whisper.ts";
import type { WholeWriter } from "./whole.ts";

export interface WhisperSinkDeps {
  api: SlackApi;
  apiUrl: string | undefined;
  whole: WholeWriter;
  uploader: Uploader;
  memory: Memory;
}

/** Files cannot be shown to one person in a channel. */
const ELSEWHERE: Draft = { markdown: "Here is what you asked for, only for you.", buttons: [], streaming: false };

/** Writes what only one person sees: one message, and files in their direct conversation with the bot. */
export function createWhisperSink(
  place: ReplyPlace,
  userId: string,
  { responseUrl }: SlackExtra,
  deps: WhisperSinkDeps,
): ReplySink {
  const { api, apiUrl, whole, uploader } = deps;
  const { teamId, channelId, threadTs } = place;
  const removal = createRemoval(deps);
  const writer = createWhisperWriter({ api, apiUrl, teamId, channelId, threadTs, userId, responseUrl });
  const status = createStatus({ api, teamId, channelId, threadTs });

  async function upload(
    files: readonly OutboundFile[],
    caption: Draft | undefined,
    nonce: string,
    signal: AbortSignal,
  ): Promise<Posted> {
    if (channelId.startsWith("D")) return uploader.upload({ place, files, caption, nonce }, signal);
    // A message to a person opens the direct conversation with them.
    const person = { teamId, channelId: userId, threadTs: undefined, questionTs: undefined };
    const told = readMessageId((await whole.post(person, ELSEWHERE, `${nonce}:told`, signal)).id);
    const direct = told === undefined ? person : { ...person, channelId: told.channelId, threadTs: told.ts };
    return uploader.upload({ place: direct, files, caption, nonce }, signal);
  }

  return {
    limits: { ...LIMITS, maxMessages: 1 },
    budget: `${PLATFORM}-whisper:${toFingerprint(responseUrl ?? `${teamId}:${userId}`)}`,
    post: (draft, nonce, signal) => guarded(signal, () => writer.post(draft, nonce, signal)),
    edit: (id, draft, signal) => guarded(signal, () => writer.edit(id, draft, signal)),
    upload: (files, caption, nonce, signal) => guarded(signal, () => upload(files, caption, nonce, signal)),
    remove: (id, signal) =>
      guarded(signal, async () => {
        const message = readMessageId(id);
        // A file in the direct conversation is a message like any other.
        await (message === undefined ? writer.remove(id, signal) : removal(message, signal));
      }),
    progress: (text, signal) => guarded(signal, () => status.show(text, signal)),
  };
}
