import type { Draft, OutboundFile, Posted, ReplySink } from "../../../src/port/sink.ts";
import type { SlackExtra } from "../address.ts";
import type { SlackApi } from "../api/client.ts";
import { isUncertain } from "../api/error.ts";
import { PLATFORM, readMessageId, toFingerprint } from "../ids.ts";
import { createWhisperWriter } from "./ephemeral.ts";
import { guarded } from "./failures.ts";
import { LIMITS } from "./limits.ts";
import type { ReplyPlace } from "./lookup.ts";
import { createResponsePacer } from "./pace.ts";
import type { WholeWriter } from "./post-and-update.ts";
import { createRemoval } from "./removal.ts";
import type { Memory } from "./sink-state.ts";
import { createStatus } from "./status.ts";
import type { Uploader } from "./upload.ts";

export interface WhisperSinkDeps {
  api: SlackApi;
  apiUrl: string | undefined;
  whole: WholeWriter;
  uploader: Uploader;
  memory: Memory;
}

/** Longest for taking back what was said of files that did not come. */
const TAKE_BACK_MS = 5_000;
/** Files cannot be shown to one person in a channel. What opens the place where they come is said before they are there. */
const COMING = toWords("I am bringing what you asked for.");
const HERE = toWords("Here is what you asked for, only for you.");

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
    const toldNonce = `${nonce}:told`;
    const told = readMessageId((await whole.post(person, COMING, toldNonce, signal)).id);
    if (told === undefined) return uploader.upload({ place: person, files, caption, nonce }, signal);
    const direct = { ...person, channelId: told.channelId, threadTs: told.ts };
    try {
      const posted = await uploader.upload({ place: direct, files, caption, nonce }, signal);
      await whole.update(told, HERE, toldNonce, signal).catch(() => {});
      return posted;
    } catch (error) {
      // Where nobody knows, the files may be there.
      if (!isUncertain(error)) await whole.remove(told, AbortSignal.timeout(TAKE_BACK_MS)).catch(() => {});
      throw error;
    }
  }

  return {
    limits: { ...LIMITS, maxMessages: 1 },
    budget: {
      key: `${PLATFORM}-response:${toFingerprint(responseUrl ?? `${teamId}:${userId}`)}`,
      createPacer: createResponsePacer,
    },
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

function toWords(markdown: string): Draft {
  return { markdown, buttons: [], streaming: false };
}
