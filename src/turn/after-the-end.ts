import type { ActionEvent, MessageEvent } from "../port/events.ts";
import { readEditionId } from "../port/ids.ts";
import type { Button, ReplySink } from "../port/sink.ts";
import type { Closing } from "../reply/drafts.ts";
import { writeReply } from "../reply/reply.ts";
import { describeEnding, toAnswerButtons, toEditionButtons, toExplainButton } from "./endings.ts";
import { editionsOf, readAnswer, rewriteClosing, takeBack, toAnswerText, toButtonsOfRun } from "./posted-answer.ts";
import type { TurnRecord } from "./record.ts";
import type { TurnServices } from "./records.ts";
import { canManage, NOT_YOURS, toPressedReply } from "./rights.ts";
import { cancelWaiting, describeUncertain, toRerunButton } from "./tool-approval.ts";

const TOO_OLD = "This answer is too old: I no longer have it.";

const STILL_WAITS = "This answer is waiting for approval.";

const STILL_WRITTEN = "I'm still writing this answer.";

const REFUSED = describeEnding({ error: "refused" }, { model: "", now: 0 });

/** The actions behind the buttons of an ended answer. If a promise rejects, the caller must retry the event. */
export interface AfterTheEnd {
  /** Shows another answer to the same question. Resolves to a refusal for the person if that is impossible. */
  show(event: ActionEvent, signal: AbortSignal): Promise<string | undefined>;
  /** Removes an answer. Resolves to a refusal for the person if that is impossible. */
  remove(event: ActionEvent): Promise<string | undefined>;
  /**
   * Creates the question that continues a truncated answer. Resolves to this question, or to a refusal. The same event
   * always gives the same question.
   */
  toContinuation(event: ActionEvent): Promise<MessageEvent | string>;
  /** Notes that the answer was continued, so that pressing the button again does nothing. Also removes the button. */
  continued(event: ActionEvent, signal: AbortSignal): Promise<void>;
  /**
   * Resolves to the bot's reply to a Stop. If the channel refused to show the end of the answer earlier, the button
   * press can make that possible now.
   */
  stop(event: ActionEvent, signal: AbortSignal): Promise<string>;
}

export function createAfterTheEnd(deps: TurnServices): AfterTheEnd {
  const { records, history, ledger } = deps;

  async function findOwn(event: ActionEvent): Promise<TurnRecord | string> {
    const record = await records.load(readEditionId(event.turnId).turnId);
    if (record === undefined) return TOO_OLD;
    if (!canManage(event, record)) return NOT_YOURS;
    record.reply = toPressedReply(event, record, record.posted.length);
    return record.phase === "final" ? record : STILL_WRITTEN;
  }

  return {
    async show(event) {
      const record = await findOwn(event);
      if (typeof record === "string") return record;
      const answer = await readAnswer(history, record);
      const editions = answer === undefined ? [] : editionsOf(answer);
      const { edition } = readEditionId(event.turnId);
      const shown = editions.find((one) => one.edition === edition);
      if (answer === undefined || shown === undefined || record.sealed !== undefined) return TOO_OLD;
      if (record.waits) return STILL_WAITS;
      const numbers = editions.map((one) => one.edition);
      const isNewest = shown === editions.at(-1);
      const uncertain = isNewest ? (await ledger.open(record)).uncertain() : [];
      const note = isNewest
        ? describeUncertain(uncertain)
        : `_Answer ${editions.indexOf(shown) + 1} of ${editions.length}, an earlier version._`;
      const sink = deps.adapterOf(record.reply.platform).sink(record.reply, deps.right);
      const steps = toEditionButtons(record.id, numbers, shown.edition);
      const own = isNewest ? toAnswerButtons(record, sink) : [];
      const open = [toRerunButton(record.id, uncertain), ...steps, ...toExplainButton(record, sink)];
      const isPartial = isNewest && answer.partial === true;
      const buttons = [...(uncertain.length > 0 ? open : [...steps, ...own]), ...toButtonsOfRun(record)];
      const closing = { note, buttons, isPartial, sources: shown.sources ?? [] };
      await writeWhole(deps, { ...record, posted: [...record.posted] }, sink, toAnswerText(shown.messages), closing);
      return undefined;
    },

    async remove(event) {
      const record = await findOwn(event);
      if (typeof record === "string") return record;
      await takeBack(deps, record);
      return undefined;
    },

    async toContinuation(event) {
      const record = await records.load(event.turnId);
      if (record === undefined) return "This answer is too old to continue. Please ask again.";
      if (!canManage(event, record)) return NOT_YOURS;
      if (!record.canContinue) return "I'm already continuing this answer.";
      return toContinuationEvent(event, record);
    },

    async continued(event, signal) {
      const record = await records.load(event.turnId);
      if (record === undefined) return;
      record.reply = toPressedReply(event, record, record.posted.length);
      await records.save({ ...record, canContinue: false });
      await rewriteClosing(deps, record, { note: "", buttons: [] }, signal);
    },

    async stop(event, signal) {
      const record = await records.load(event.turnId);
      if (record?.waits && record.phase === "final" && canManage(event, record)) {
        await cancelWaiting(deps, record, signal);
        return "Stopped. I didn't make the calls that were waiting for your approval.";
      }
      const isUnseen = record?.phase === "final" && record.isRefused === true && canManage(event, record);
      const retry: Button = { action: "retry", turnId: event.turnId, label: "Retry" };
      const closing = { note: REFUSED.note, buttons: [retry] };
      // In a channel that accepts no messages from the bot, a button press can sometimes still change its own message.
      if (isUnseen && (await rewriteClosing(deps, { ...record, reply: event.reply }, closing, signal))) {
        await records.save({ ...record, isRefused: false });
      }
      return "This answer has already ended.";
    },
  };
}

async function writeWhole(
  { records, history, right, scheduler, log }: TurnServices,
  record: TurnRecord,
  sink: ReplySink,
  text: string,
  closing: Closing,
): Promise<void> {
  const count = record.posted.length;
  const run = async (onText: (text: string) => void) => {
    onText(text);
    return "stop";
  };
  await writeReply(run, {
    sink,
    right,
    scheduler,
    record,
    isResumed: false,
    refusal: () => closing,
    onRecord: async () => void (await records.save(record)),
    onSeen: async () => {},
    onCall: (call, error) => error && log.warn({ err: error, turnId: record.id, call }, "a write was refused"),
    onRefused: () => {},
    describeWait: () => "",
    onWait: () => {},
    onVisible: () => {},
    onEnd: () => closing,
  });
  if (record.posted.length === count) return;
  // If someone replies to one of the additional messages, the bot must find this answer.
  const answer = await readAnswer(history, record);
  if (answer !== undefined) await history.append(record.conversationId, answer, record.posted);
}

export function toContinuationEvent(event: ActionEvent, record: TurnRecord): MessageEvent {
  const { key, author, at } = event;
  const { conversationId, posted } = record;
  const inReplyTo = posted.at(-1);
  const reply = toPressedReply(event, record, 0);
  return {
    kind: "message",
    key: `${key}:continue`,
    messageId: `${reply.platform}:continue:${key}`,
    conversationId,
    author,
    reply,
    at,
    text: "Go on exactly where you stopped.",
    attachments: [],
    addressed: "bot",
    // The question follows the answer that it continues, not the newest message of the conversation.
    ...(inReplyTo !== undefined && { inReplyTo }),
  };
}
