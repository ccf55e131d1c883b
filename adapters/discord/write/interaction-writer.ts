import { type APIMessage, MessageFlags, Routes } from "discord.js";
import { SinkError } from "../../../src/port/errors.ts";
import type { OutboundFile, Posted, Receipt } from "../../../src/port/sink.ts";
import { type Api, read } from "../api/client.ts";
import { isRefused, isUncertain } from "../api/error.ts";
import type { Files } from "../api/files.ts";
import { type MessagePlace, readMessageId, toMessageId } from "../ids.ts";
import { type ChannelWriter, toPosted, toReceipt } from "./channel-writer.ts";
import type { FinalMessages } from "./final-message.ts";
import {
  createInteractionToken,
  type InteractionAddress,
  type InteractionTokenDeps,
  ORIGINAL,
} from "./interaction-token.ts";
import { type MessageBody, readCustomId, readCustomIds } from "./message-body.ts";
import type { SeenInteractionMessages } from "./seen-messages.ts";
import { attach } from "./uploads.ts";

/** Messages looked through for one that an earlier attempt wrote. */
const LOOKED_THROUGH = 50;

/** One message of the answer to an interaction. `mark` stands in the buttons of `body`. */
export interface InteractionPost {
  body: MessageBody;
  files: readonly OutboundFile[];
  nonce: string;
  mark: string;
}

/** Writes the answer to an interaction: with its token, whose calls have counters of their own, then as the bot. */
export interface InteractionWriter {
  /**
   * The same post makes no second message where the first can be found: a public one always, the original answer always,
   * and an ephemeral one by the process that wrote it, if it listens too.
   */
  post(post: InteractionPost, signal: AbortSignal): Promise<Posted>;
  edit(place: MessagePlace, body: MessageBody, signal: AbortSignal): Promise<Receipt>;
  remove(place: MessagePlace, signal: AbortSignal): Promise<void>;
}

export interface InteractionWriterDeps extends InteractionTokenDeps {
  channel: ChannelWriter;
  channelId: string;
  files: Pick<Files, "toPostedRefs">;
  seenMessages: Pick<SeenInteractionMessages, "find">;
  finalMessages: FinalMessages;
  /** No other process writes answers, so an interaction that is new here has no answer yet. */
  isAlone: boolean;
}

export function createInteractionWriter(to: InteractionAddress, deps: InteractionWriterDeps): InteractionWriter {
  const { channel, channelId, files, acknowledgements, finalMessages } = deps;
  const { isPrivate, isPress } = to;
  const token = createInteractionToken(to, deps);
  let isBegun = false;
  /** True while nothing of this answer can have been written elsewhere. */
  let isWhole = false;
  /** True while a call whose answer was lost may have written some of it. */
  let isDoubtful = false;
  /** Messages of this answer that are known. */
  const written = new Set<string>();

  async function begin(post: InteractionPost, signal: AbortSignal): Promise<Posted | undefined> {
    // Until Discord has it, there is no place to fill.
    await acknowledgements.get(to.token);
    const isFresh = acknowledgements.delete(to.token) && deps.isAlone;
    // A pressed button promises nothing.
    const filled = isPress ? undefined : await fill(post, isFresh, signal);
    isBegun = true;
    isWhole = isFresh;
    return filled;
  }

  /** Fills the place that the acknowledgement keeps, unless something else stands there. */
  async function fill(post: InteractionPost, isFresh: boolean, signal: AbortSignal): Promise<Posted | undefined> {
    const original = isFresh ? undefined : await token.readOriginal(signal);
    const isMine = isFresh || (original !== undefined && (original.isWaiting || isSame(original.message, post)));
    const write = { method: "PATCH" as const, messageId: ORIGINAL, ...attach(post.body, post.files) };
    const answer = isMine ? await token.call(write, signal) : undefined;
    if (answer !== undefined) finalMessages.settle(to, ORIGINAL);
    return answer && toPosted(answer, post.body, files);
  }

  async function followUp({ body, files: uploads, nonce }: InteractionPost, signal: AbortSignal): Promise<Posted> {
    const flags = body.flags | (isPrivate ? MessageFlags.Ephemeral : 0);
    try {
      const answer = await token.call({ method: "POST", ...attach({ ...body, flags }, uploads) }, signal);
      if (answer !== undefined) return toPosted(answer, body, files);
    } catch (error) {
      if (isUncertain(error)) {
        isWhole = false;
        isDoubtful = true;
      }
      throw error;
    }
    if (isPrivate) throw tooLate();
    return channel.post(channelId, { body, files: uploads, nonce }, signal);
  }

  /** Finds the post if an earlier attempt, or a call whose answer was lost, wrote it already. These posts have no nonce. */
  async function find(post: InteractionPost, signal: AbortSignal): Promise<Posted | undefined> {
    if (isWhole) return undefined;
    const isMeant = (message: APIMessage) => !written.has(toId(message)) && isSame(message, post);
    const message = isPrivate
      ? await deps.seenMessages.find({ interactionId: to.id, isMeant, mayBeOnItsWay: isDoubtful }, signal)
      : await findWritten(deps.api, { ...to, channelId }, isMeant, signal);
    isDoubtful = false;
    return message && toPosted({ data: message }, post.body, files);
  }

  async function post(post: InteractionPost, signal: AbortSignal): Promise<Posted> {
    const filled = isBegun ? undefined : await begin(post, signal);
    const posted = filled ?? (await find(post, signal)) ?? (await followUp(post, signal));
    written.add(posted.id);
    if (isPrivate) finalMessages.note(to, readMessageId(posted.id)?.messageId ?? "", post.body);
    return posted;
  }

  const nameOf = ({ messageId }: MessagePlace) => (messageId === to.pressedId ? ORIGINAL : messageId);

  async function edit(place: MessagePlace, body: MessageBody, signal: AbortSignal): Promise<Receipt> {
    const messageId = nameOf(place);
    const answer = await token.call({ method: "PATCH", messageId, body }, signal);
    if (isPrivate && messageId !== ORIGINAL && answer === undefined) throw tooLate();
    if (isPrivate) finalMessages.note(to, messageId, body);
    return answer === undefined ? channel.edit(place, body, signal) : toReceipt(answer);
  }

  return {
    post: (given, signal) => finalMessages.whileWriting(to, () => post(given, signal)),
    edit: (place, body, signal) => finalMessages.whileWriting(to, () => edit(place, body, signal)),
    async remove(place, signal) {
      const answer = await token.call({ method: "DELETE", messageId: nameOf(place) }, signal);
      if (answer === undefined) await channel.remove(place, signal);
      finalMessages.settle(to, place.messageId);
    },
  };
}

function tooLate(): SinkError {
  return new SinkError("gone", "The time is over in which this can be answered so that only one person sees it.");
}

/** Looks for the post among the bot's messages in the channel since the interaction. */
async function findWritten(
  api: Api,
  { id, channelId, applicationId }: InteractionAddress & { channelId: string },
  isMeant: (message: APIMessage) => boolean,
  signal: AbortSignal,
): Promise<APIMessage | undefined> {
  const query = { after: id, limit: String(LOOKED_THROUGH) };
  try {
    const messages = await read<APIMessage[]>(api, Routes.channelMessages(channelId), signal, query);
    // Other answers may say the same, so that alone proves nothing.
    const own = messages.filter(({ webhook_id, interaction_metadata: by }) => {
      return webhook_id === applicationId && (by === undefined || by.id === id);
    });
    return own.find(isMeant);
  } catch (error) {
    // A bot that may not read the channel cannot find anything, but it can answer.
    if (!isRefused(error)) throw error;
    return undefined;
  }
}

/** By the mark in its buttons, else by its words and the sizes of its files. */
function isSame(message: APIMessage, { body, files, mark }: InteractionPost): boolean {
  if (readCustomIds(message.components).some((id) => readCustomId(id)?.mark === mark)) return true;
  if (message.content === "" && files.length === 0) return false;
  const sizes = message.attachments.map(({ size }) => size).join();
  return message.content === body.content && sizes === files.map(({ bytes }) => bytes.length).join();
}

function toId({ id: messageId, channel_id: channelId }: APIMessage): string {
  return toMessageId({ channelId, messageId });
}
