import { request } from "undici";
import type { Draft, Posted, Receipt } from "../../../src/port/sink.ts";
import type { SlackApi } from "../api/client.ts";
import { SlackApiError } from "../api/error.ts";
import { createSlackHosts } from "../api/hosts.ts";
import { toWhisperId } from "../ids.ts";
import { toMessageBody } from "./blocks.ts";

/** Slack takes five answers to a command. The last is kept for the text when it is whole. */
const MAX_GROWING = 4;

/** Writes what only one person sees. Slack gives such a message no id: it is changed by answering the command again. */
export interface WhisperWriter {
  post(draft: Draft, nonce: string, signal: AbortSignal): Promise<Posted>;
  edit(id: string, draft: Draft, signal: AbortSignal): Promise<Receipt>;
  remove(id: string, signal: AbortSignal): Promise<void>;
}

export interface WhisperDeps {
  api: SlackApi;
  apiUrl: string | undefined;
  teamId: string;
  channelId: string;
  threadTs: string | undefined;
  userId: string;
  /** Where the command, or the button, is answered; without it a message is shown once, when it is whole. */
  responseUrl: string | undefined;
}

export function createWhisperWriter(deps: WhisperDeps): WhisperWriter {
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
    const { status, words } = await send(responseUrl, body, signal);
    if (status === 200) return true;
    // Nothing but a limit or a fault of Slack's passes; every other refusal would be the same again.
    const mayPass = status === 429 || status >= 500;
    if (mayPass) throw new SlackApiError("response_url", `Slack answered ${status}.`, { code: words, status });
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
      const id = toWhisperId(teamId, channelId, nonce);
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
async function send(url: string, body: object, signal: AbortSignal): Promise<{ status: number; words: string }> {
  try {
    const answer = await request(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      signal,
    });
    const text = await answer.body.text();
    return { status: answer.statusCode, words: /"error":\s*"(\w+)"/.exec(text)?.[1] ?? "" };
  } catch (error) {
    if (signal.aborted) throw error;
    throw new SlackApiError("response_url", "Slack could not be reached to answer a command.", { code: "", status: 0 });
  }
}
