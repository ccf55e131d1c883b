import { SinkError } from "../../../src/port/errors.ts";
import type { Right } from "../../../src/port/right.ts";
import type { Draft, Posted, Receipt, ReplySink, SinkLimits } from "../../../src/port/sink.ts";
import type { SlackExtra } from "../address.ts";
import type { SlackApi } from "../api/client.ts";
import { type ApiError, codeOf } from "../api/error.ts";
import { type MessagePlace, PLATFORM, readMessageId, type ToMark } from "../ids.ts";
import { readShownPart } from "./draft.ts";
import { guarded, isSealing, toSinkError } from "./failures.ts";
import { MAX_FILE_BYTES, type Uploader } from "./files.ts";
import { type Lookup, type ReplyPlace, readMessage } from "./lookup.ts";
import { lengthOfMarkdown, MAX_LENGTH, NEARLY_FULL } from "./markdown.ts";
import { createSlackPacer } from "./pace.ts";
import type { PostAndUpdateWriter } from "./post-and-update.ts";
import { createRecovery } from "./recovery.ts";
import { createSession } from "./session.ts";
import type { SinkState } from "./sink-state.ts";
import type { MarkWaiting } from "./status.ts";
import { createStatus } from "./status.ts";
import { createStreamWriter } from "./stream.ts";

export const LIMITS: SinkLimits = {
  maxLength: MAX_LENGTH,
  lengthOf: lengthOfMarkdown,
  // A growing message ends at this length, because a stream cannot remove text. The bytes between this and `maxLength`
  // are reserved for content that Slack counts in addition to the text.
  keptLength: NEARLY_FULL + 64,
  maxFileBytes: MAX_FILE_BYTES,
  maxMessages: 4,
};

export interface SinkDeps {
  api: SlackApi;
  postAndUpdate: PostAndUpdateWriter;
  uploader: Uploader;
  lookup: Lookup;
  markWaiting: MarkWaiting;
  state: SinkState;
  right: Right;
  toMark: ToMark;
  /** Unix milliseconds. */
  now(): number;
}

export function createSink(place: ReplyPlace, extra: SlackExtra, deps: SinkDeps): ReplySink {
  const { api, postAndUpdate, uploader, lookup, markWaiting, state } = deps;
  const { teamId, channelId, threadTs } = place;
  const fallback = {
    isActive: !mayStream(),
    activate: () => void (fallback.isActive = true),
  };
  const streams = createStreamWriter({ ...deps, fallback });
  const recovery = createRecovery({ ...deps, place, streams });
  const status = createStatus({ api, teamId, channelId, threadTs });
  const session = createSession({ api, state, place });
  /** This reply has a message, so the call that finishes the message also ends the session. */
  let isWritten = false;
  const recipient = { userId: extra.user, teamId: extra.recipientTeam ?? teamId };

  function mayStream(): boolean {
    const isDirect = channelId.startsWith("D");
    return (
      threadTs !== undefined && (isDirect || extra.user !== undefined) && state.supports("streams", teamId, channelId)
    );
  }

  async function begin(draft: Draft, nonce: string, signal: AbortSignal): Promise<Posted> {
    // A draft without a source replaces the earlier text instead of continuing it.
    const wantsStream = draft.streaming && draft.source !== undefined && !fallback.isActive;
    const mayGrow = wantsStream && mayStream();
    if (!mayGrow) fallback.activate();
    // The pacer allowed the start of a stream. A post has another limit, which the pacer checks next.
    if (wantsStream && !mayGrow) throw new SinkError("unavailable", "Slack can't stream here: the reply is posted.");
    const posted = mayGrow
      ? await streams.start(place, recipient, draft, nonce, signal)
      : await postAndUpdate.post(place, draft, nonce, signal);
    if (mayGrow) session.begin();
    else state.nonces.set(posted.id, nonce);
    status.replaced();
    isWritten = true;
    // A message that has stopped growing has its own buttons.
    if (!draft.streaming) session.end();
    return posted;
  }

  async function post(draft: Draft, nonce: string, isNew: boolean, signal: AbortSignal): Promise<Posted> {
    const look = () => lookup.findPost(place, nonce, signal);
    const found = await recovery.find({ nonce, isNew, look }, signal);
    if (found === undefined) return recovery.post(nonce, () => begin(draft, nonce, signal), signal);
    if (state.streams.get(found.id) === undefined) fallback.activate();
    return found;
  }

  async function update(id: string, draft: Draft, signal: AbortSignal): Promise<Receipt> {
    const messagePlace = placeOf(id);
    // A stream that an earlier process started has no mark. Its id becomes its mark, so that the lookup for the next
    // message does not find this one.
    const isOfEarlierAttempt = state.files.get(id) === undefined;
    const nonce = state.nonces.get(id) ?? (isOfEarlierAttempt ? id : undefined);
    fallback.activate();
    try {
      return await postAndUpdate.update(messagePlace, draft, nonce, signal);
    } catch (error) {
      if (isSealing(error)) return leaveSealed(api, { at: messagePlace, draft, refusal: error }, signal);
      if (codeOf(error) !== "streaming_state_conflict") throw error;
      // An earlier attempt started this stream and never finished it.
      await streams.endOrphan(messagePlace, nonce, signal);
      return postAndUpdate.update(messagePlace, draft, nonce, signal);
    }
  }

  return {
    limits: LIMITS,
    budget: { key: `${PLATFORM}:${teamId}`, createPacer: createSlackPacer },
    room: channelId,
    fallback,
    traits: {
      steps: state.supports("cards", teamId),
      secondThoughts: true,
      get waits() {
        return session.hasStop ? "late" : "soon";
      },
    },
    post: (draft, nonce, signal, isFirst = false) => guarded(signal, () => post(draft, nonce, isFirst, signal)),
    edit: (id, draft, signal) =>
      guarded(signal, async () => {
        const stream = state.streams.get(id);
        const writing = stream === undefined ? update(id, draft, signal) : streams.write(stream, draft, signal);
        const receipt = await writing;
        isWritten = true;
        if (!draft.streaming && receipt.isPartial !== true) session.end();
        return receipt;
      }),
    upload: (files, caption, nonce, signal) =>
      guarded(signal, async () => {
        const delivery = { place, files, caption, nonce };
        const look = () => uploader.find(delivery, signal);
        const found = await recovery.find({ nonce, isNew: false, look }, signal);
        if (found !== undefined) return found;
        return recovery.post(nonce, () => uploader.upload(delivery, signal), signal);
      }),
    remove: (id, signal) =>
      guarded(signal, async () => {
        state.streams.delete(id);
        session.end();
        await postAndUpdate.remove(placeOf(id), signal);
      }),
    markWaiting: (id, isWaiting, signal) => markWaiting(placeOf(id), isWaiting, signal),
    progress: (text, signal) => {
      if (text !== "") session.begin();
      else if (!isWritten) session.end();
      return guarded(signal, () => status.show(text, signal));
    },
  };
}

interface SealedMessage {
  at: MessagePlace;
  draft: Draft;
  refusal: ApiError;
}

/** A sealed message can show more of the draft than this process knows, or even the whole draft. */
async function leaveSealed(
  api: SlackApi,
  { at, draft, refusal }: SealedMessage,
  signal: AbortSignal,
): Promise<Receipt> {
  const message = await readMessage(api, at, signal).catch(() => undefined);
  signal.throwIfAborted();
  const shown = message && readShownPart(message, draft);
  if (shown?.isAll === true) return {};
  throw toSinkError(refusal, shown === undefined ? {} : { shownLength: shown.length });
}

function placeOf(id: string): MessagePlace {
  const place = readMessageId(id);
  if (place === undefined) throw new SinkError("gone", `${JSON.stringify(id)} is not the id of a message on Slack.`);
  return place;
}
