import { SinkError } from "../../../src/port/errors.ts";
import type { ReplyAddress } from "../../../src/port/events.ts";
import type { Draft, OutboundFile, Posted, ReplySink, SinkLimits } from "../../../src/port/sink.ts";
import { codeOf } from "../api/error.ts";
import type { Files } from "../api/files.ts";
import type { Rooms } from "../api/rooms.ts";
import { type MessagePlace, PLATFORM, readMessageId, toFingerprint } from "../ids.ts";
import { type ButtonContext, lengthOfBody, type MessageBody, toMessageBody } from "./draft.ts";
import { guarded, toSinkError } from "./failures.ts";
import { checkFiles, toMaxFileBytes } from "./files.ts";
import {
  type InteractionAddress,
  type InteractionTokenDeps,
  MARGIN_MS,
  readInteractionAddress,
} from "./interaction-token.ts";
import { createInteractionWriter, type InteractionWriter, type SeenInteractionMessages } from "./interaction-writer.ts";
import { lengthOfMarkdown, MAX_LENGTH } from "./markdown.ts";
import type { DiscordPace } from "./pace.ts";
import { createPostAndUpdateWriter, type PostAndUpdateWriter } from "./post-and-update.ts";
import { findOnlyReader, SENT_DIRECTLY, uploadDirectly } from "./private.ts";
import type { FinalMessages } from "./private-ending.ts";
import { createMarkWaiting, type MarkWaitingDeps, type Typing } from "./status.ts";

const LIMITS: Omit<SinkLimits, "maxFileBytes"> = {
  maxLength: MAX_LENGTH,
  lengthOf: lengthOfMarkdown,
  keptLength: 0.85 * MAX_LENGTH,
  maxMessages: 5,
};
const BARE: Draft = { markdown: "", buttons: [], streaming: false };
/** Discord's error code for its hourly limit on edits to old messages. */
const OLD_EDITS = 30046;

export interface SinkDeps extends InteractionTokenDeps, MarkWaitingDeps {
  isAlone: boolean;
  files: Pick<Files, "toPostedRefs">;
  seenMessages: Pick<SeenInteractionMessages, "find">;
  finalMessages: FinalMessages;
  pace: DiscordPace;
  typingIn(channelId: string): Typing;
  rooms: Pick<Rooms, "mayReadHistory" | "mayReact" | "maxFileBytesIn">;
}

export function createSink(address: ReplyAddress, deps: SinkDeps): ReplySink {
  const { api } = deps;
  const markWaiting = createMarkWaiting(deps);
  // For Discord, a thread is a channel.
  const channelId = address.threadId ?? address.channelId;
  const interaction = readInteractionAddress(address);
  const postAndUpdate = createPostAndUpdateWriter(api, deps.files, deps.rooms.mayReadHistory);
  const writer = interaction && createInteractionWriter(interaction, { ...deps, postAndUpdate, channelId });
  // An acknowledged command already shows that the bot is working. A pressed button shows nothing.
  const isSilent = interaction !== undefined && (!interaction.isPress || interaction.isPrivate);
  const typing = deps.typingIn(channelId);
  const root = address.extra?.["root"];
  /** The next post replies to this message: first to the question, then to the previous part of the answer. */
  let pointsAt = address.replyToId === undefined ? undefined : readMessageId(address.replyToId)?.messageId;
  const reader = findOnlyReader(address, interaction);
  const maxFileBytes = () =>
    toMaxFileBytes(reader === undefined ? findFileLimit(channelId, interaction, deps) : undefined);
  /** Messages that accept no more edits, with their replacements. */
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
        ? await postAndUpdate.post(channelId, { ...post, replyToId: pointsAt }, signal)
        : await writer.post({ ...post, mark: toFingerprint(nonce) }, signal);
    pointPast(posted.id);
    return posted;
  }

  /** Makes the next post reply to this message, unless it already replies to a later one. */
  function pointPast(id: string): void {
    const { messageId } = placeOf(id);
    const isLater = pointsAt === undefined || BigInt(messageId) > BigInt(pointsAt);
    if (root === undefined) pointsAt = undefined;
    else if (isLater) pointsAt = messageId;
  }

  async function move(id: string, body: MessageBody, signal: AbortSignal): Promise<Posted> {
    const { messageId } = placeOf(id);
    const posted = await postAndUpdate.post(
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
    traits: {
      steps: true,
      foldedQuotes: true,
      secondThoughts: true,
      waits: "soon",
      ...(reader !== undefined && { isPublic: true }),
    },
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
          return await (writer ?? postAndUpdate).update(placeOf(moved.get(id) ?? id), body, signal);
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
        const posted = await uploadDirectly(reader, { body, files, nonce }, { api, postAndUpdate }, signal);
        await write(toCheckedBody({ ...BARE, markdown: SENT_DIRECTLY }, { root, mark }), [], `${nonce}:sent`, signal);
        return posted;
      }),
    remove: (id, signal) =>
      guarded(signal, () => removeGently(writer ?? postAndUpdate, placeOf(moved.get(id) ?? id), signal)),
    // A command has no message to mark.
    ...(interaction === undefined && {
      markWaiting: (id, isWaiting, signal) => guarded(signal, () => markWaiting(placeOf(id), isWaiting, signal)),
    }),
    async progress(text, signal) {
      signal.throwIfAborted();
      if (text === "" || isSilent) typing.stop();
      else typing.start();
    },
  };
}

/** The file limit that Discord reports. An interaction's own limit applies until its token expires. */
function findFileLimit(
  channelId: string,
  interaction: InteractionAddress | undefined,
  { now, rooms }: Pick<SinkDeps, "now" | "rooms">,
): number | undefined {
  const isByToken = interaction !== undefined && now() < interaction.expiresAt - MARGIN_MS;
  return (isByToken ? interaction.maxFileBytes : undefined) ?? rooms.maxFileBytesIn(channelId);
}

function toCheckedBody(draft: Draft, context: ButtonContext): MessageBody {
  const body = toMessageBody(draft, context);
  const length = lengthOfBody(body);
  if (length > MAX_LENGTH) {
    throw new SinkError(
      "rejected",
      `The message has ${length} characters as Discord shows it; at most ${MAX_LENGTH} are allowed.`,
    );
  }
  return body;
}

function placeOf(id: string): MessagePlace {
  const place = readMessageId(id);
  if (place === undefined) throw new SinkError("gone", `${JSON.stringify(id)} is not the id of a Discord message.`);
  return place;
}

/** A missing message counts as removed. */
async function removeGently(
  writer: Pick<PostAndUpdateWriter | InteractionWriter, "remove">,
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
