import { request } from "undici";
import type { Draft, OutboundFile, Posted, Receipt, ReplySink } from "../../../src/port/sink.ts";
import type { SlackExtra } from "../address.ts";
import type { SlackApi } from "../api/client.ts";
import { isUncertain, type ResponseInfo, SlackApiError, toRefusal } from "../api/error.ts";
import { createSlackHosts } from "../api/hosts.ts";
import { PLATFORM, readMessageId, toEphemeralId, toFingerprint } from "../ids.ts";
import { toMessageBody } from "./blocks.ts";
import { guarded } from "./failures.ts";
import type { ReplyPlace } from "./lookup.ts";
import { createResponsePacer } from "./pace.ts";
import { LIMITS, type SinkDeps } from "./sink.ts";
import { createStatus } from "./status.ts";

/** Slack takes five answers to a command. The last is kept for the text when it is whole. */
const MAX_GROWING = 4;

/** Longest for taking back the announcement of files that did not come. */
const TAKE_BACK_MS = 5_000;
/** Files cannot be shown to one person in a channel. What opens the place where they come is said before they are there. */
const COMING = toWords("I am bringing what you asked for.");
const HERE = toWords("Here is what you asked for, only for you.");

/** Writes what only one person sees. Slack gives such a message no id: it is changed by answering the command again. */
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
  /** A thread with replies: in another one Slack shows nothing to one person. */
  threadTs: string | undefined;
  userId: string;
  /** Takes answers to the command or the button; without it a message is shown once, when it is complete. */
  responseUrl: string | undefined;
}

export function createEphemeralWriter(deps: EphemeralWriterDeps): EphemeralWriter {
  const { api, teamId, channelId, threadTs, userId } = deps;
  /** Undefined when no more answers are taken there, and for one that is not Slack's: then it is shown once, too. */
  let responseUrl =
    deps.responseUrl !== undefined && createSlackHosts(deps.apiUrl).isHook(deps.responseUrl)
      ? deps.responseUrl
      : undefined;
  /** The one that an answer in the place of the last one changes. */
  let newest: string | undefined;
  let uses = 0;
  const shown = new Set<string>();

  async function respond(body: object, signal: AbortSignal): Promise<boolean> {
    if (responseUrl === undefined) return false;
    uses += 1;
    const { isTaken, status, retryAfterS } = await send(responseUrl, body, signal);
    if (isTaken) return true;
    // Only a rate limit or a fault of Slack's passes; every other refusal would repeat.
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
    edit: show,
    async remove(id, signal) {
      if (newest === id) await respond({ delete_original: true }, signal);
      shown.delete(id);
    },
  };
}

/** The address is a secret: it stands in no error. */
async function send(url: string, body: object, signal: AbortSignal): Promise<ResponseInfo & { isTaken: boolean }> {
  try {
    const answer = await request(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      signal,
    });
    const { statusCode: status, headers } = answer;
    // Slack answers "ok"; what stands in for it may answer with nothing, or as the methods do.
    const isTaken = status >= 200 && status < 300 && !/"ok":\s*false/.test(await answer.body.text());
    return { isTaken, status, retryAfterS: String(headers["retry-after"] ?? "") };
  } catch (error) {
    if (signal.aborted) throw error;
    throw new SlackApiError("response_url", "Slack could not be reached to answer a command.", { code: "", status: 0 });
  }
}

export interface EphemeralSinkDeps extends Pick<SinkDeps, "api" | "postAndUpdate" | "uploader"> {
  apiUrl: string | undefined;
}

/** Writes what only one person sees: one message, and files in their direct conversation with the bot. */
export function createEphemeralSink(
  place: ReplyPlace,
  userId: string,
  { responseUrl, activeThread }: SlackExtra,
  deps: EphemeralSinkDeps,
): ReplySink {
  const { api, apiUrl, postAndUpdate, uploader } = deps;
  const { teamId, channelId, threadTs } = place;
  const to = { teamId, channelId, threadTs: activeThread, userId, responseUrl };
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
    const toldNonce = `${nonce}:told`;
    const told = readMessageId((await postAndUpdate.post(person, COMING, toldNonce, signal)).id);
    if (told === undefined) return uploader.upload({ place: person, files, caption, nonce }, signal);
    const direct = { ...person, channelId: told.channelId, threadTs: told.ts };
    try {
      const posted = await uploader.upload({ place: direct, files, caption, nonce }, signal);
      await postAndUpdate.update(told, HERE, toldNonce, signal).catch(() => {});
      return posted;
    } catch (error) {
      // After an uncertain answer the files may be there.
      if (!isUncertain(error)) await postAndUpdate.remove(told, AbortSignal.timeout(TAKE_BACK_MS)).catch(() => {});
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
        await (message === undefined ? writer.remove(id, signal) : postAndUpdate.remove(message, signal));
      }),
    progress: (text, signal) => guarded(signal, () => status.show(text, signal)),
  };
}

function toWords(markdown: string): Draft {
  return { markdown, buttons: [], streaming: false };
}
