import { lengthOf } from "./component-rules.ts";
import { type Attachment, type Channel, type Message, type Payload, shown } from "./world.ts";

/** Up to this much text can move from the end of a message to the next message. */
const NEARLY_FULL = 1800;
const CURSOR_AND_FENCES = /[\s…▌█●`*_~|.]+$/u;

/**
 * True if an edit shows less of the same text than the message showed before, apart from cursors and closing marks. A
 * full message can become shorter, because its end moves to the next message. It must never return to an earlier state.
 */
export function isStaleEdit(message: Message, content: string): boolean {
  const shows = bare(shown(message).content);
  const next = bare(content);
  if (next === "" || next.length >= shows.length || !shows.startsWith(next)) return false;
  const wasShown = message.states.slice(0, -1).some((state) => bare(state.content) === next);
  return wasShown || lengthOf(shown(message).content) < NEARLY_FULL;
}

function bare(text: string): string {
  return text.replace(CURSOR_AND_FENCES, "");
}

/** The parts of a message that are compared with other messages. */
export interface WrittenText {
  content: string;
  nonce: string | number | undefined;
  referenceId: string | undefined;
  interactionId: string | undefined;
  attachments: readonly Attachment[];
  components: readonly Payload[];
}

/** Describes how a post repeats an existing message; undefined if it does not. */
export function describeDoublePost(channel: Channel, botId: string, post: WrittenText): string | undefined {
  const all = liveIn(channel);
  const twin = all.find(({ author, nonce }) => author.id === botId && nonce !== undefined && nonce === post.nonce);
  if (twin !== undefined) {
    return `a second message carries the nonce ${post.nonce}: it was not enforced, or had been forgotten`;
  }
  if (post.content === "") return undefined;
  const before = findSame(all, botId, post, triggerOf(all, botId, post));
  return before === undefined ? undefined : `the text of message ${before.id} was posted again to the same trigger`;
}

/**
 * Describes the other answer to the same trigger that an edit repeats. Two full messages can look alike, because a long
 * answer can repeat itself.
 */
export function describeDoubleEdit(
  channel: Channel,
  botId: string,
  message: Message,
  content: string,
): string | undefined {
  if (content === "" || lengthOf(content) >= NEARLY_FULL) return undefined;
  const all = liveIn(channel);
  const trigger = triggerOf(beforeOf(all, message), botId, toWritten(message));
  const others = all.filter((other) => other !== message);
  const twin = findSame(others, botId, { ...toWritten(message), content }, trigger);
  return twin === undefined ? undefined : `message ${message.id} became the double of message ${twin.id}`;
}

function liveIn({ messages }: Channel): Message[] {
  return [...messages.values()].filter(({ deletedAtMs }) => deletedAtMs === undefined);
}

function findSame(all: readonly Message[], botId: string, post: WrittenText, trigger: string): Message | undefined {
  return all.find(
    (message) =>
      message.author.id === botId &&
      toLook(toWritten(message)) === toLook(post) &&
      !areOfDifferentAnswers(toWritten(message), post) &&
      triggerOf(beforeOf(all, message), botId, toWritten(message)) === trigger,
  );
}

/**
 * True if the two messages belong to different answers. If a message replies to nothing, for example because the bot
 * cannot read the channel, only the ids of its buttons show to which answer it belongs.
 */
function areOfDifferentAnswers(one: WrittenText, other: WrittenText): boolean {
  if (one.referenceId !== undefined && other.referenceId !== undefined) return false;
  const [ofOne, ofOther] = [targetsOf(one), targetsOf(other)];
  return ofOne.length > 0 && ofOther.length > 0 && !ofOne.some((target) => ofOther.includes(target));
}

/** Returns the parts of buttons' ids after the action, which are the same for all buttons of an answer. */
function targetsOf({ components }: WrittenText): string[] {
  return [...JSON.stringify(components).matchAll(/"custom_id":"[^":]*:([^"]*)"/g)].map(([, target = ""]) => target);
}

/**
 * Returns the content to compare. Includes files and buttons, because messages with one request's files have the same
 * text.
 */
function toLook({ content, attachments, components }: WrittenText): string {
  if (attachments.length === 0) return content;
  const files = attachments.map(({ bytes }) => Buffer.from(bytes).toString("base64"));
  return JSON.stringify([content, files, components]);
}

function toWritten(message: Message): WrittenText {
  const { nonce, reference, interaction } = message;
  const { content, attachments, components } = shown(message);
  const of = { nonce, referenceId: reference?.messageId, interactionId: interaction?.id };
  return { content, attachments, components, ...of };
}

function beforeOf(all: readonly Message[], message: Message): readonly Message[] {
  return all.slice(0, all.indexOf(message));
}

/**
 * Returns what caused a post: an interaction, the message that it replies to, or the last person's message before it.
 */
function triggerOf(before: readonly Message[], botId: string, written: WrittenText): string {
  const last = before.findLast(({ author }) => author.id !== botId);
  return written.interactionId ?? written.referenceId ?? last?.id ?? "nothing";
}
