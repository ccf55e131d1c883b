import { Routes } from "discord.js";
import { SinkError } from "../../../src/port/errors.ts";
import type { ReplyAddress } from "../../../src/port/events.ts";
import type { Draft, OutboundFile, Posted, ReplySink, SinkLimits } from "../../../src/port/sink.ts";
import { codeOf } from "../api/error.ts";
import type { Files } from "../api/files.ts";
import type { OptionalCalls } from "../api/optional-calls.ts";
import type { Rooms } from "../api/rooms.ts";
import { type MessagePlace, PLATFORM, readMessageId, toFingerprint } from "../ids.ts";
import { type ChannelWriter, createChannelWriter } from "./channel-writer.ts";
import { toSinkError } from "./failures.ts";
import type { FinalMessages } from "./final-message.ts";
import {
  type InteractionAddress,
  type InteractionTokenDeps,
  MARGIN_MS,
  readInteractionAddress,
} from "./interaction-token.ts";
import { createInteractionWriter, type InteractionWriter } from "./interaction-writer.ts";
import { lengthOfMarkdown } from "./markdown.ts";
import { type ButtonContext, lengthOfBody, MAX_LENGTH, type MessageBody, toMessageBody } from "./message-body.ts";
import type { DiscordPace } from "./pace.ts";
import { openDirectly } from "./post-privately.ts";
import type { SeenInteractionMessages } from "./seen-messages.ts";
import type { Typing } from "./typing.ts";
import { checkFiles, toMaxFileBytes } from "./uploads.ts";

const LIMITS: Omit<SinkLimits, "maxFileBytes"> = {
  maxLength: MAX_LENGTH,
  lengthOf: lengthOfMarkdown,
  keptLength: 0.85 * MAX_LENGTH,
  maxMessages: 5,
};
/** Stands where everybody would see a file that is for one person alone. */
const SENT_DIRECTLY = "I have sent you the file directly.";
/** The draft of a message of files alone. */
const BARE: Draft = { markdown: "", buttons: [], streaming: false };
/** Put to a question that waits for its turn. */
const WAITING = "⏳";
/** The hour's ration of edits to old messages is used up. */
const OLD_EDITS = 30046;

export interface SinkDeps extends InteractionTokenDeps {
  /** No other process writes answers. */
  isAlone: boolean;
  files: Pick<Files, "toPostedRefs">;
  seenMessages: Pick<SeenInteractionMessages, "find">;
  finalMessages: FinalMessages;
  pace: DiscordPace;
  typingIn(channelId: string): Typing;
  rooms: Pick<Rooms, "mayReadHistory" | "mayReact" | "maxFileBytesIn">;
  /** By the channel. Discord takes few: one in a quarter of a second. */
  reactions: OptionalCalls;
}

/** Writes one reply into a channel, a thread or a direct conversation, or as the answer to an interaction. */
export function createSink(address: ReplyAddress, deps: SinkDeps): ReplySink {
  const { api } = deps;
  // To Discord a thread is a channel.
  const channelId = address.threadId ?? address.channelId;
  const interaction = readInteractionAddress(address);
  const channel = createChannelWriter(api, deps.files, deps.rooms.mayReadHistory);
  const writer = interaction && createInteractionWriter(interaction, { ...deps, channel, channelId });
  // An acknowledged command shows by itself that the bot is at work; a pressed button shows nothing.
  const isSilent = interaction !== undefined && (!interaction.isPress || interaction.isPrivate);
  const typing = deps.typingIn(channelId);
  const root = address.extra?.["root"];
  /** The next post replies to this: the question, then the part before it, or a busy channel would part them. */
  let pointsAt = address.replyToId === undefined ? undefined : readMessageId(address.replyToId)?.messageId;
  const reader = findOnlyReader(address, interaction);
  const maxFileBytes = () =>
    toMaxFileBytes(reader === undefined ? findFileLimit(channelId, interaction, deps) : undefined);
  /** Messages that could not be edited any more, and those that stand in their place. */
  const moved = new Map<string, string>();

  async function write(
    body: MessageBody,
    files: readonly OutboundFile[],
    nonce: string,
    signal: AbortSignal,
  ): Promise<Posted> {
    typing.stop();
    const post = { body, files, nonce };
    const posted =
      writer === undefined
        ? await channel.post(channelId, { ...post, replyToId: pointsAt }, signal)
        : await writer.post({ ...post, mark: toFingerprint(nonce) }, signal);
    pointPast(posted.id);
    return posted;
  }

  /** The next post replies to this message, which an earlier attempt may have written, or to a later one. */
  function pointPast(id: string): void {
    const { messageId } = placeOf(id);
    const isLater = pointsAt === undefined || BigInt(messageId) > BigInt(pointsAt);
    if (root === undefined) pointsAt = undefined;
    else if (isLater) pointsAt = messageId;
  }

  /** Puts a message in the place of one that takes no more edits. */
  async function move(id: string, body: MessageBody, signal: AbortSignal): Promise<Posted> {
    const { messageId } = placeOf(id);
    const posted = await channel.post(
      channelId,
      { body, files: [], nonce: `moved:${id}`, replyToId: messageId },
      signal,
    );
    moved.set(id, posted.id);
    return posted;
  }

  return {
    get limits() {
      return { ...LIMITS, maxFileBytes: maxFileBytes() };
    },
    budget:
      interaction === undefined
        ? deps.pace.channel(`${PLATFORM}:${channelId}`)
        : deps.pace.interaction(`${PLATFORM}-webhook:${toFingerprint(interaction.token)}`),
    tellsWaits: true,
    foldsQuotes: true,
    showsSteps: true,
    supportsSecondThoughts: true,
    post: (draft, nonce, signal) =>
      guarded(signal, () => {
        const mark = writer && toFingerprint(nonce);
        return write(toCheckedBody(draft, { root, mark }), [], nonce, signal);
      }),
    edit: (id, draft, signal) =>
      guarded(signal, async () => {
        const body = toCheckedBody(draft, { root });
        pointPast(id);
        try {
          return await (writer ?? channel).edit(placeOf(moved.get(id) ?? id), body, signal);
        } catch (error) {
          if (codeOf(error) !== OLD_EDITS) throw error;
          const { budget } = await move(id, body, signal);
          return budget === undefined ? {} : { budget };
        }
      }),
    upload: (files, caption, nonce, signal) =>
      guarded(signal, async () => {
        checkFiles(files, maxFileBytes());
        const mark = writer && toFingerprint(nonce);
        const body = toCheckedBody(caption ?? BARE, { root, mark });
        if (reader === undefined) return write(body, files, nonce, signal);
        const direct = await openDirectly(api, reader, signal);
        const posted = await channel.post(direct, { body, files, nonce, replyToId: undefined }, signal);
        await write(toCheckedBody({ ...BARE, markdown: SENT_DIRECTLY }, { root, mark }), [], `${nonce}:sent`, signal);
        return posted;
      }),
    remove: (id, signal) =>
      guarded(signal, () => removeGently(writer ?? channel, placeOf(moved.get(id) ?? id), signal)),
    // A command leaves no message that could be marked.
    ...(interaction === undefined && { markWaiting: createMarkWaiting(deps) }),
    async progress(text, signal) {
      signal.throwIfAborted();
      if (text === "" || isSilent) typing.stop();
      else typing.start();
    },
  };
}

function createMarkWaiting({
  rooms,
  reactions,
}: Pick<SinkDeps, "rooms" | "reactions">): NonNullable<ReplySink["markWaiting"]> {
  return (id, isWaiting, signal) =>
    guarded(signal, async () => {
      const { channelId, messageId } = placeOf(id);
      // Each refused call counts against the bot.
      if (!rooms.mayReact(channelId)) return true;
      const route = Routes.channelMessageOwnReaction(channelId, messageId, encodeURIComponent(WAITING));
      const call = { method: isWaiting ? "PUT" : "DELETE", route } as const;
      return (await reactions.call(channelId, call, signal)) !== undefined;
    });
}

/** The only person who is to see a reply that everybody would see. */
function findOnlyReader({ visibleTo, isDirect }: ReplyAddress, interaction?: InteractionAddress): string | undefined {
  return isDirect === true || interaction?.isPrivate === true ? undefined : visibleTo;
}

/** The limit that Discord names. An interaction's limit holds until its token ends. */
function findFileLimit(
  channelId: string,
  interaction: InteractionAddress | undefined,
  { now, rooms }: Pick<SinkDeps, "now" | "rooms">,
): number | undefined {
  const isByToken = interaction !== undefined && now() < interaction.expiresAt - MARGIN_MS;
  return (isByToken ? interaction.maxFileBytes : undefined) ?? rooms.maxFileBytesIn(channelId);
}

async function guarded<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  try {
    return await work();
  } catch (error) {
    throw toSinkError(error, signal);
  }
}

function toCheckedBody(draft: Draft, context: ButtonContext): MessageBody {
  const body = toMessageBody(draft, context);
  const length = lengthOfBody(body);
  if (length > MAX_LENGTH) {
    throw new SinkError("rejected", `The message has ${length} characters as Discord shows it; ${MAX_LENGTH} fit.`);
  }
  return body;
}

function placeOf(id: string): MessagePlace {
  const place = readMessageId(id);
  if (place === undefined) throw new SinkError("gone", `${JSON.stringify(id)} is not the id of a message on Discord.`);
  return place;
}

/** Removes a message; one that is gone already counts as removed. */
async function removeGently(
  writer: Pick<ChannelWriter | InteractionWriter, "remove">,
  place: MessagePlace,
  signal: AbortSignal,
): Promise<void> {
  try {
    await writer.remove(place, signal);
  } catch (error) {
    const refusal = toSinkError(error, signal);
    if (!(refusal instanceof SinkError) || refusal.kind !== "gone") throw refusal;
  }
}
