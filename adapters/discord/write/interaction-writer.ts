import { type APIMessage, MessageFlags, Routes } from "discord.js";
import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import { SinkError } from "../../../src/port/errors.ts";
import type { OutboundFile, Posted, Receipt } from "../../../src/port/sink.ts";
import { type Api, read } from "../api/client.ts";
import { isRefused, isUncertain } from "../api/error.ts";
import type { Files } from "../api/files.ts";
import { type MessagePlace, readMessageId, toMessageId } from "../ids.ts";
import { type MessageBody, readCustomId, readCustomIds } from "./draft.ts";
import { attach } from "./files.ts";
import {
  createInteractionToken,
  type InteractionAddress,
  type InteractionTokenDeps,
  ORIGINAL,
} from "./interaction-token.ts";
import { type PostAndUpdateWriter, toPosted, toReceipt } from "./post-and-update.ts";
import type { FinalMessages } from "./private-ending.ts";

const LOOKED_THROUGH = 50;

/** One message in the answer to an interaction. The buttons in `body` contain `mark`. */
export interface InteractionPost {
  body: MessageBody;
  files: readonly OutboundFile[];
  nonce: string;
  mark: string;
}

/** Writes with the interaction's token, which has its own rate limits, and later with the bot's token. */
export interface InteractionWriter {
  /**
   * A repeated post creates no second message if the writer finds the first one. It always finds a public message and
   * the promised answer. It finds any other private message only in the process that wrote it, if that process listens.
   */
  post(post: InteractionPost, signal: AbortSignal): Promise<Posted>;
  update(place: MessagePlace, body: MessageBody, signal: AbortSignal): Promise<Receipt>;
  remove(place: MessagePlace, signal: AbortSignal): Promise<void>;
}

export interface InteractionWriterDeps extends InteractionTokenDeps {
  postAndUpdate: PostAndUpdateWriter;
  channelId: string;
  files: Pick<Files, "toPostedRefs">;
  seenMessages: Pick<SeenInteractionMessages, "find">;
  finalMessages: FinalMessages;
  /** True if no other process writes answers: then a new interaction has no answer yet. */
  isAlone: boolean;
}

export function createInteractionWriter(to: InteractionAddress, deps: InteractionWriterDeps): InteractionWriter {
  const { postAndUpdate, channelId, files, acknowledgements, finalMessages } = deps;
  const { isPrivate, isPress } = to;
  const token = createInteractionToken(to, deps);
  let hasStarted = false;
  /** True while only this process can have written to this answer. */
  let isWhole = false;
  /** True while a call whose response was lost may have written to this answer. */
  let isDoubtful = false;
  const written = new Set<string>();

  async function begin(post: InteractionPost, signal: AbortSignal): Promise<Posted | undefined> {
    // There is no promised answer to replace until Discord has the acknowledgement.
    await acknowledgements.get(to.token);
    const isFresh = acknowledgements.delete(to.token) && deps.isAlone;
    // A press promises no answer.
    const filled = isPress ? undefined : await fill(post, isFresh, signal);
    hasStarted = true;
    isWhole = isFresh;
    return filled;
  }

  /** Replaces the promised answer. Resolves to undefined if the promised answer already shows something else. */
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
    return postAndUpdate.post(channelId, { body, files: uploads, nonce }, signal);
  }

  /** Finds the post if an earlier attempt wrote it, or a call whose response was lost. These posts have no nonce. */
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
    const filled = hasStarted ? undefined : await begin(post, signal);
    const posted = filled ?? (await find(post, signal)) ?? (await followUp(post, signal));
    written.add(posted.id);
    if (isPrivate) finalMessages.note(to, readMessageId(posted.id)?.messageId ?? "", post.body);
    return posted;
  }

  const nameOf = ({ messageId }: MessagePlace) => (messageId === to.pressedId ? ORIGINAL : messageId);

  async function update(place: MessagePlace, body: MessageBody, signal: AbortSignal): Promise<Receipt> {
    const messageId = nameOf(place);
    const answer = await token.call({ method: "PATCH", messageId, body }, signal);
    if (isPrivate && messageId !== ORIGINAL && answer === undefined) throw tooLate();
    if (isPrivate) finalMessages.note(to, messageId, body);
    return answer === undefined ? postAndUpdate.update(place, body, signal) : toReceipt(answer);
  }

  return {
    post: (given, signal) => finalMessages.whileWriting(to, () => post(given, signal)),
    update: (place, body, signal) => finalMessages.whileWriting(to, () => update(place, body, signal)),
    async remove(place, signal) {
      const answer = await token.call({ method: "DELETE", messageId: nameOf(place) }, signal);
      if (answer === undefined) await postAndUpdate.remove(place, signal);
      finalMessages.settle(to, place.messageId);
    },
  };
}

function tooLate(): SinkError {
  return new SinkError("gone", "Discord no longer accepts a private answer to this command.");
}

async function findWritten(
  api: Api,
  { id, channelId, applicationId }: InteractionAddress & { channelId: string },
  isMeant: (message: APIMessage) => boolean,
  signal: AbortSignal,
): Promise<APIMessage | undefined> {
  const query = { after: id, limit: String(LOOKED_THROUGH) };
  try {
    const messages = await read<APIMessage[]>(api, Routes.channelMessages(channelId), signal, query);
    // Filters by interaction, because other answers can have the same text.
    const own = messages.filter(({ webhook_id, interaction_metadata: by }) => {
      return webhook_id === applicationId && (by === undefined || by.id === id);
    });
    return own.find(isMeant);
  } catch (error) {
    // Without access to the channel, the bot finds nothing but can still answer.
    if (!isRefused(error)) throw error;
    return undefined;
  }
}

/** Compares the mark in the buttons; without a mark, the text and the sizes of the files. */
function isSame(message: APIMessage, { body, files, mark }: InteractionPost): boolean {
  if (readCustomIds(message.components).some((id) => readCustomId(id)?.mark === mark)) return true;
  if (message.content === "" && files.length === 0) return false;
  const sizes = message.attachments.map(({ size }) => size).join();
  return message.content === body.content && sizes === files.map(({ bytes }) => bytes.length).join();
}

function toId({ id: messageId, channel_id: channelId }: APIMessage): string {
  return toMessageId({ channelId, messageId });
}

const MAX_SEEN = 500;
/** The gateway reports a message at about the time at which its post's response arrives. */
const WAIT_MS = 2_000;

/**
 * The bot's answers to interactions, as the gateway reported them: no call can list private messages, so a process that
 * listens looks here if the response to a post was lost.
 */
export interface SeenInteractionMessages {
  see(message: APIMessage): void;
  /** Resolves to the message if the gateway has reported it or does so within two seconds; else to undefined. */
  find(sought: MessageSearch, signal: AbortSignal): Promise<APIMessage | undefined>;
}

export interface MessageSearch {
  interactionId: string;
  isMeant(message: APIMessage): boolean;
  mayBeOnItsWay: boolean;
}

export function createSeenInteractionMessages(): SeenInteractionMessages {
  const seen = new BoundedMap<string, APIMessage>(MAX_SEEN);
  const waiting = new Set<() => void>();

  return {
    see(message) {
      if (message.interaction_metadata === undefined) return;
      seen.set(message.id, message);
      for (const wake of waiting) wake();
    },
    async find({ interactionId, isMeant, mayBeOnItsWay }, signal) {
      const look = () =>
        [...seen.values()].find((one) => one.interaction_metadata?.id === interactionId && isMeant(one));
      const late = AbortSignal.any([signal, AbortSignal.timeout(WAIT_MS)]);
      if (mayBeOnItsWay) while (look() === undefined && !late.aborted) await wakeOf(late);
      return look();
    },
  };

  function wakeOf(late: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        waiting.delete(wake);
        late.removeEventListener("abort", wake);
        resolve();
      };
      waiting.add(wake);
      late.addEventListener("abort", wake);
    });
  }
}
