import { SinkError } from "../../../src/port/errors.ts";
import type { ReplyAddress } from "../../../src/port/events.ts";
import type { Draft, Fallback, Posted, Receipt, ReplySink } from "../../../src/port/sink.ts";
import { readExtra, type SlackExtra } from "../address.ts";
import type { SlackApi } from "../api/client.ts";
import { codeOf, type SlackApiError } from "../api/error.ts";
import { type MessagePlace, PLATFORM, readMessageId, readUserId, type ToMark } from "../ids.ts";
import { readShownPart } from "./blocks.ts";
import { createWhisperSink } from "./ephemeral-sink.ts";
import { guarded, isSealing, toSinkError } from "./failures.ts";
import { LIMITS } from "./limits.ts";
import { type Lookup, type ReplyPlace, readMessage } from "./lookup.ts";
import { createSlackPacer } from "./pace.ts";
import type { WholeWriter } from "./post-and-update.ts";
import { createRecovery } from "./recovery.ts";
import { createRemoval } from "./removal.ts";
import type { Running } from "./running.ts";
import { createSession } from "./session.ts";
import type { Memory } from "./sink-state.ts";
import { createStatus } from "./status.ts";
import { createStreamWriter } from "./stream.ts";
import type { Uploader } from "./upload.ts";

export interface SinkDeps {
  api: SlackApi;
  apiUrl: string | undefined;
  whole: WholeWriter;
  uploader: Uploader;
  lookup: Lookup;
  memory: Memory;
  toMark: ToMark;
  /** Told which turn writes a message that grows: it has no buttons that say so. */
  running: Pick<Running, "note">;
  /** Unix milliseconds. */
  now(): number;
}

/** Writes one reply into a thread, a channel or a direct conversation, or as what only one person sees. */
export function createSink(address: ReplyAddress, deps: SinkDeps): ReplySink {
  const extra = readExtra(address);
  const place = toPlace(address, extra);
  // In a direct conversation nobody else sees anything, and what stands there is still there tomorrow.
  const isAlone = address.channelId.startsWith("D") && extra.responseUrl === undefined;
  if (address.visibleTo !== undefined && !isAlone)
    return createWhisperSink(place, readUserId(address.visibleTo), extra, deps);
  return createOpenSink(place, extra, deps);
}

function createOpenSink(place: ReplyPlace, extra: SlackExtra, deps: SinkDeps): ReplySink {
  const { api, whole, uploader, lookup, memory, running } = deps;
  const { teamId, channelId, threadTs } = place;
  const fallback = createFallback(!mayStream());
  const streams = createStreamWriter({ ...deps, fallback });
  const recovery = createRecovery({ ...deps, place, streams });
  const status = createStatus({ api, teamId, channelId, threadTs });
  const removal = createRemoval(deps);
  const session = createSession({ api, memory, place });
  const recipient = { userId: extra.user, teamId: extra.recipientTeam ?? teamId };

  function mayStream(): boolean {
    const isDirect = channelId.startsWith("D");
    return threadTs !== undefined && (isDirect || extra.user !== undefined) && memory.mayStream(teamId, channelId);
  }

  async function begin(draft: Draft, nonce: string, signal: AbortSignal): Promise<Posted> {
    // Without its source a draft is no part of a text that grows, but one that changes.
    const mayGrow = draft.streaming && draft.source !== undefined && !fallback.isActive && mayStream();
    if (!mayGrow) fallback.activate();
    const posted = mayGrow
      ? await streams.start(place, recipient, draft, nonce, signal)
      : await whole.post(place, draft, nonce, signal);
    const stop = draft.buttons.find(({ action }) => action === "stop");
    if (stop !== undefined) running.note(posted.id, stop.turnId);
    if (mayGrow) session.begin();
    memory.files.set(posted.id, { ids: [] });
    if (!mayGrow) memory.nonces.set(posted.id, nonce);
    status.replaced();
    return posted;
  }

  async function post(draft: Draft, nonce: string, isNew: boolean, signal: AbortSignal): Promise<Posted> {
    const look = () => lookup.findPost(place, nonce, signal);
    const found = await recovery.find({ nonce, isNew, look }, signal);
    if (found === undefined) return recovery.post(nonce, () => begin(draft, nonce, signal), signal);
    if (memory.streams.get(found.id) === undefined) fallback.activate();
    return found;
  }

  async function update(id: string, draft: Draft, signal: AbortSignal): Promise<Receipt> {
    const messagePlace = placeOf(id);
    // What an earlier run began as a stream has no mark. As its turn knows it, nobody is to take it for the next message.
    const isOfEarlierRun = memory.files.get(id) === undefined;
    const nonce = memory.nonces.get(id) ?? (isOfEarlierRun ? id : undefined);
    fallback.activate();
    try {
      return await whole.update(messagePlace, draft, nonce, signal);
    } catch (error) {
      if (isSealing(error)) return leave(messagePlace, draft, error, signal);
      if (codeOf(error) !== "streaming_state_conflict") throw error;
      // An earlier run began it as a stream and never came to its end.
      await streams.takeOver(messagePlace, nonce, signal);
      return whole.update(messagePlace, draft, nonce, signal);
    }
  }

  /** What stays as it is may show more than this process knows of: also all that it is to. */
  async function leave(at: MessagePlace, draft: Draft, refusal: SlackApiError, signal: AbortSignal): Promise<Receipt> {
    const message = await readMessage(api, at, signal).catch(() => undefined);
    signal.throwIfAborted();
    const shown = message && readShownPart(message, draft);
    if (shown?.isAll === true) return {};
    throw toSinkError(refusal, shown === undefined ? {} : { shownLength: shown.length });
  }

  return {
    limits: LIMITS,
    budget: { key: `${PLATFORM}:${teamId}`, createPacer: createSlackPacer },
    room: channelId,
    fallback,
    showsSteps: memory.takes("cards", teamId),
    supportsFeedback: true,
    tellsWaits: true,
    post: (draft, nonce, signal) => guarded(signal, () => post(draft, nonce, false, signal)),
    postAnew: (draft, nonce, signal) => guarded(signal, () => post(draft, nonce, true, signal)),
    edit: (id, draft, signal) =>
      guarded(signal, async () => {
        const stream = memory.streams.get(id);
        const writing = stream === undefined ? update(id, draft, signal) : streams.write(stream, draft, signal);
        const receipt = await writing;
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
        memory.streams.delete(id);
        session.end();
        await removal(placeOf(id), signal);
      }),
    progress: (text, signal) => guarded(signal, () => status.show(text, signal)),
  };
}

function createFallback(isActive: boolean): Fallback {
  let taken = isActive;
  return {
    get isActive() {
      return taken;
    },
    activate: () => void (taken = true),
  };
}

function toPlace({ channelId, threadId, replyToId }: ReplyAddress, { team }: SlackExtra): ReplyPlace {
  const questionTs = replyToId === undefined ? undefined : readMessageId(replyToId)?.ts;
  return { teamId: team, channelId, threadTs: threadId, questionTs };
}

function placeOf(id: string): MessagePlace {
  const place = readMessageId(id);
  if (place === undefined) throw new SinkError("gone", `${JSON.stringify(id)} is not the id of a message on Slack.`);
  return place;
}
