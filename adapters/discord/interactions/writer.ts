import { type APIMessage, MessageFlags, Routes } from "discord.js";
import type { Posted, Receipt } from "../../../src/adapter.ts";
import { SinkError } from "../../../src/errors.ts";
import { isUncertain } from "../api/error.ts";
import type { Api } from "../api.ts";
import { type ChannelWriter, toPosted, toReceipt } from "../channel-writer.ts";
import { type MessageBody, readCustomId, readCustomIds } from "../drafts.ts";
import { attach, type Upload } from "../files.ts";
import { type MessagePlace, toFingerprint } from "../ids.ts";
import type { InteractionAddress } from "./address.ts";
import { createInteractionToken, ORIGINAL } from "./token.ts";

/** Messages looked through for one that an earlier run wrote. */
const LOOKED_THROUGH = 50;

/** One message of the answer to an interaction. `mark` stands in the buttons of `body`. */
export interface InteractionPost {
  body: MessageBody;
  files: readonly Upload[];
  nonce: string;
  mark: string;
}

/** Writes the answer to an interaction: with its token, whose calls have counters of their own, then as the bot. */
export interface InteractionWriter {
  /** The same post makes no second message where the first can be found: in public, and in the place of the promise. */
  post(post: InteractionPost, signal: AbortSignal): Promise<Posted>;
  edit(place: MessagePlace, body: MessageBody, signal: AbortSignal): Promise<Receipt>;
  remove(place: MessagePlace, signal: AbortSignal): Promise<void>;
}

export interface InteractionWriterDeps {
  api: Api;
  channel: ChannelWriter;
  channelId: string;
  /** Tokens of interactions that this process acknowledged and has not answered yet. */
  fresh: Set<string>;
  now(): number;
}

export function createInteractionWriter(to: InteractionAddress, deps: InteractionWriterDeps): InteractionWriter {
  const { api, channel, channelId, fresh } = deps;
  const { isPrivate, isPress } = to;
  const token = createInteractionToken(to, deps);
  /** Whether the answer that the acknowledgement promised is there; a pressed button promises none. */
  let isFilled = isPress;
  /** Whether all there may be of this answer was written here. */
  let isWhole = isPress;

  /** Fills the place that the acknowledgement keeps, unless something else stands there. */
  async function fill(post: InteractionPost, signal: AbortSignal): Promise<Posted | undefined> {
    const isFresh = fresh.delete(to.token);
    const original = isFresh ? undefined : await token.readOriginal(signal);
    const isMine = isFresh || (original !== undefined && (original.isWaiting || isSame(original.message, post)));
    const write = { method: "PATCH" as const, messageId: ORIGINAL, ...attach(post.body, post.files) };
    const answer = isMine ? await token.call(write, signal) : undefined;
    isFilled = true;
    isWhole = isFresh;
    return answer && toPosted(answer);
  }

  async function followUp({ body, files, nonce }: InteractionPost, signal: AbortSignal): Promise<Posted> {
    const flags = body.flags | (isPrivate ? MessageFlags.Ephemeral : 0);
    try {
      const answer = await token.call({ method: "POST", ...attach({ ...body, flags }, files) }, signal);
      if (answer !== undefined) return toPosted(answer);
    } catch (error) {
      if (isUncertain(error)) isWhole = false;
      throw error;
    }
    if (isPrivate) {
      throw new SinkError("gone", "The time is over in which this can be answered so that only one person sees it.");
    }
    return channel.post(channelId, { body, files, nonce }, signal);
  }

  return {
    async post(post, signal) {
      const filled = isFilled ? undefined : await fill(post, signal);
      if (filled !== undefined) return filled;
      // These posts have no nonce, and what is private cannot be looked for.
      const isLookedFor = !isWhole && !isPrivate;
      const written = isLookedFor ? await findWritten(api, { ...to, channelId }, post, signal) : undefined;
      return written ?? followUp(post, signal);
    },
    async edit(place, body, signal) {
      const answer = await token.call({ method: "PATCH", messageId: place.messageId, body }, signal);
      return answer === undefined ? channel.edit(place, body, signal) : toReceipt(answer);
    },
    async remove(place, signal) {
      const answer = await token.call({ method: "DELETE", messageId: place.messageId }, signal);
      if (answer === undefined) await channel.remove(place, signal);
    },
  };
}

/** Finds a message of this answer that an earlier run, or a call whose answer was lost, may have written. */
async function findWritten(
  api: Api,
  { id, channelId, applicationId }: InteractionAddress & { channelId: string },
  post: InteractionPost,
  signal: AbortSignal,
): Promise<Posted | undefined> {
  const query = new URLSearchParams({ after: id, limit: String(LOOKED_THROUGH) });
  try {
    const { data } = await api.call({ method: "GET", route: Routes.channelMessages(channelId), query }, signal);
    // Other answers may say the same, so that alone proves nothing.
    const own = (data as APIMessage[]).filter(({ webhook_id, interaction_metadata: by }) => {
      return webhook_id === applicationId && (by === undefined || by.id === id);
    });
    const written = own.find((message) => isSame(message, post));
    return written && toPosted({ data: written });
  } catch (error) {
    // Where the bot may not read it cannot find anything, but it can answer.
    if (isUncertain(error)) throw error;
    return undefined;
  }
}

function isSame(message: APIMessage, { body, mark }: InteractionPost): boolean {
  const isMarked = readCustomIds(message.components).some((id) => readCustomId(id)?.mark === mark);
  return isMarked || (message.content !== "" && message.content === body.content);
}

/** Names the counter of an interaction's calls, without its token. */
export function toBudgetKey(token: string): string {
  return `discord-webhook:${toFingerprint(token)}`;
}
