import { request } from "undici";
import type { Draft, OutboundFile, Posted, Receipt, ReplySink } from "../../../src/port/sink.ts";
import type { SlackExtra } from "../address.ts";
import type { SlackApi } from "../api/client.ts";
import { ApiError, isUncertain, type ResponseInfo, toRefusal } from "../api/error.ts";
import { createSlackHosts } from "../api/files.ts";
import { PLATFORM, readMessageId, toEphemeralId, toFingerprint } from "../ids.ts";
import { toMessageBody } from "./draft.ts";
import { guarded } from "./failures.ts";
import type { ReplyPlace } from "./lookup.ts";
import { createResponsePacer } from "./pace.ts";
import { LIMITS, type SinkDeps } from "./sink.ts";
import { createStatus } from "./status.ts";

/** Slack accepts five replies to a command. The last one is reserved for the complete text. */
const MAX_GROWING = 4;

/** Timeout for removing the announcement of an upload that failed. */
const TAKE_BACK_MS = 5_000;
/** Announces files, which Slack cannot show to one person in a channel. Opens the direct conversation for them. */
const COMING = toWords("I'm getting what you asked for.");
const HERE = toWords("Here's what you asked for. Only you can see it.");

/** Slack gives an ephemeral message no id, so a change is another reply to the command. */
export interface EphemeralWriter {
  post(draft: Draft, nonce: string, signal: AbortSignal): Promise<Posted>;
  edit(id: string, draft: Draft, signal: AbortSignal): Promise<Receipt>;
  remove(id: string, signal: AbortSignal): Promise<void>;
}

export interface EphemeralWriterDeps {
  api: Pick<SlackApi, "call">;
  apiUrl: string | undefined;
  teamId: string;
  channelId: string;
  /** A thread that has replies, because Slack shows ephemeral messages in no other thread. */
  threadTs: string | undefined;
  userId: string;
  /** Accepts replies to the command or the button. Absent: the message is shown once, when it is complete. */
  responseUrl: string | undefined;
  /** True if `responseUrl` belongs to a button in an ephemeral message: the first edit replaces that message. */
  isOnEphemeral?: boolean;
}

export function createEphemeralWriter(deps: EphemeralWriterDeps): EphemeralWriter {
  const { api, teamId, channelId, threadTs, userId } = deps;
  /** Undefined if the URL accepts no more replies or is not Slack's. In both cases, the message is shown once. */
  let responseUrl =
    deps.responseUrl !== undefined && createSlackHosts(deps.apiUrl).isHook(deps.responseUrl)
      ? deps.responseUrl
      : undefined;
  /** The message that a reply with `replace_original` changes. */
  let newest: string | undefined;
  let uses = 0;
  const shown = new Set<string>();

  async function respond(body: object, signal: AbortSignal): Promise<boolean> {
    if (responseUrl === undefined) return false;
    uses += 1;
    const { isTaken, status, retryAfterS } = await send(responseUrl, body, signal);
    if (isTaken) return true;
    // Only rate limits and Slack's own failures are temporary. All other refusals would repeat.
    if (status === 429 || status >= 500) throw toRefusal("response_url", {}, { status, retryAfterS });
    responseUrl = undefined;
    return false;
  }

  async function say(draft: Draft, signal: AbortSignal): Promise<void> {
    const place = { channel: channelId, user: userId, ...(threadTs !== undefined && { thread_ts: threadTs }) };
    await api.call(teamId, "chat.postEphemeral", { ...place, ...toMessageBody(draft) }, signal);
  }

  async function show(id: string, draft: Draft, signal: AbortSignal): Promise<Receipt> {
    const body = toMessageBody(draft);
    if (draft.streaming && (responseUrl === undefined || uses >= MAX_GROWING)) return {};
    const replace_original = newest === id;
    const thread = threadTs === undefined ? {} : { thread_ts: threadTs };
    const isTaken = await respond({ response_type: "ephemeral", replace_original, ...thread, ...body }, signal);
    if (isTaken) newest = id;
    else if (!draft.streaming) await say(draft, signal);
    if (isTaken || !draft.streaming) shown.add(id);
    return {};
  }

  return {
    async post(draft, nonce, signal) {
      const id = toEphemeralId(teamId, channelId, nonce);
      if (!shown.has(id)) await show(id, draft, signal);
      return { id };
    },
    edit(id, draft, signal) {
      if (deps.isOnEphemeral) newest ??= id;
      return show(id, draft, signal);
    },
    async remove(id, signal) {
      if (newest === id) await respond({ delete_original: true }, signal);
      shown.delete(id);
    },
  };
}

/** The URL is a secret, so no error contains it. */
async function send(url: string, body: object, signal: AbortSignal): Promise<ResponseInfo & { isTaken: boolean }> {
  try {
    const answer = await request(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      signal,
    });
    const { statusCode: status, headers } = answer;
    // Slack's response is "ok". A server that imitates Slack may send an empty body, or JSON as the methods do.
    const isTaken = status >= 200 && status < 300 && !/"ok":\s*false/.test(await answer.body.text());
    return { isTaken, status, retryAfterS: String(headers["retry-after"] ?? "") };
  } catch (error) {
    if (signal.aborted) throw error;
    throw new ApiError("response_url", "Could not reach Slack to answer a command.", { code: "", status: 0 });
  }
}

export interface EphemeralSinkDeps extends Pick<SinkDeps, "api" | "postAndUpdate" | "uploader"> {
  apiUrl: string | undefined;
}

export function createEphemeralSink(
  place: ReplyPlace,
  userId: string,
  { responseUrl, isOnEphemeral, activeThread }: SlackExtra,
  deps: EphemeralSinkDeps,
): ReplySink {
  const { api, apiUrl, postAndUpdate, uploader } = deps;
  const { teamId, channelId, threadTs } = place;
  const to = {
    teamId,
    channelId,
    threadTs: activeThread,
    userId,
    responseUrl,
    isOnEphemeral: isOnEphemeral === "true",
  };
  const writer = createEphemeralWriter({ api, apiUrl, ...to });
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
    const noticeNonce = `${nonce}:told`;
    const notice = readMessageId((await postAndUpdate.post(person, COMING, noticeNonce, signal)).id);
    if (notice === undefined) return uploader.upload({ place: person, files, caption, nonce }, signal);
    const direct = { ...person, channelId: notice.channelId, threadTs: notice.ts };
    try {
      const posted = await uploader.upload({ place: direct, files, caption, nonce }, signal);
      await postAndUpdate.update(notice, HERE, noticeNonce, signal).catch(() => {});
      return posted;
    } catch (error) {
      // Keeps the notice if the outcome is uncertain, because the files may be there.
      if (!isUncertain(error)) await postAndUpdate.remove(notice, AbortSignal.timeout(TAKE_BACK_MS)).catch(() => {});
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
        // A file in the direct conversation belongs to an ordinary message.
        await (message === undefined ? writer.remove(id, signal) : postAndUpdate.remove(message, signal));
      }),
    progress: (text, signal) => guarded(signal, () => status.show(text, signal)),
  };
}

function toWords(markdown: string): Draft {
  return { markdown, buttons: [], streaming: false };
}
