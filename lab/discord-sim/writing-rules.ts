import { lengthOf } from "./component-rules.ts";
import { type Attachment, type Channel, type Message, type Payload, shown } from "./world.ts";

/** A message this long may have lost its end to the next one. */
const NEARLY_FULL = 1800;
const CURSOR_AND_FENCES = /[\s…▌█●`*_~|.]+$/u;

/**
 * Whether an edit shows less of the same text than the message showed before, apart from cursors and closing
 * marks. A full message may become shorter, because its end moves to the next one; showing an earlier state again never is that.
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

/** What a message of the bot is compared by. */
export interface WrittenText {
  content: string;
  nonce: string | number | undefined;
  referenceId: string | undefined;
  interactionId: string | undefined;
  attachments: readonly Attachment[];
  components: readonly Payload[];
}

/** Says in what way a post of the bot repeats one that is there; undefined when it does not. */
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
 * Says of which other answer to the same trigger an edit makes a message the double. Two full
 * messages may look alike, because a long answer can repeat itself.
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

/** Where one of them replies to nothing, as without the right to read, only what their buttons are for tells. */
function areOfDifferentAnswers(one: WrittenText, other: WrittenText): boolean {
  if (one.referenceId !== undefined && other.referenceId !== undefined) return false;
  const [ofOne, ofOther] = [targetsOf(one), targetsOf(other)];
  return ofOne.length > 0 && ofOther.length > 0 && !ofOne.some((target) => ofOther.includes(target));
}

/** What stands behind the name of the action in the id of a button: the same for all buttons of an answer. */
function targetsOf({ components }: WrittenText): string[] {
  return [...JSON.stringify(components).matchAll(/"custom_id":"[^":]*:([^"]*)"/g)].map(([, target = ""]) => target);
}

/** Files of one request have the same words under them, and differ in what they are or in what their buttons do. */
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

/** What a post answers: an interaction, the message it replies to, or the last one a person wrote before. */
function triggerOf(before: readonly Message[], botId: string, written: WrittenText): string {
  const last = before.findLast(({ author }) => author.id !== botId);
  return written.interactionId ?? written.referenceId ?? last?.id ?? "nothing";
}
