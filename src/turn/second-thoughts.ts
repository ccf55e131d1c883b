import type { Logger } from "pino";
import type { History } from "../history/history.ts";
import type { Scheduler } from "../pacing/scheduler.ts";
import type { ActionEvent, DeletedEvent, EditedEvent } from "../port/events.ts";
import { readEditionId, toEditionId } from "../port/ids.ts";
import type { Button, ReplySink } from "../port/sink.ts";
import type { Closing } from "../reply/drafts.ts";
import type { SinkOf } from "../reply/paced-sink.ts";
import { writeReply } from "../reply/reply.ts";
import type { Ledger } from "../tools/ledger.ts";
import { toAnswerButtons, toExplainButton } from "./answer-buttons.ts";
import { isQuestionGone } from "./context.ts";
import { rewriteClosing } from "./cut-answer.ts";
import { editionsOf, readAnswer, toAnswerText, toEditionButtons } from "./editions.ts";
import type { TurnRecord, TurnRecords } from "./record.ts";
import { mayPress, NOT_YOURS, toPressedReply } from "./rights.ts";
import { type TakeBackDeps, takeBack } from "./take-back.ts";
import { describeUncertain, toRerunButton } from "./tool-approval.ts";

const TOO_OLD = "This answer is too old for that: it is not kept any more.";
const STILL_WAITS = "This answer waits for somebody to allow what it is to do.";
const QUESTION_GONE = "_The question was deleted._";
/** Replaces the words at an answer's end that said why something of it is missing. */
const PART_WITHOUT_QUESTION = "_The question was deleted. This answer is not whole._";
const STILL_WRITTEN = "This answer is still being written.";

/** Handles what people do about an answer after its end. Promises reject when their event has to be worked on again. */
export interface SecondThoughts {
  /** The press that re-asks an edited message, to be accepted before the edit; undefined if nothing is to be asked. */
  onEdited(event: EditedEvent): Promise<ActionEvent | undefined>;
  /** True for a message that the bot itself took away, when an answer came to need fewer of them. */
  isLeftBehind(messageId: string): Promise<boolean>;
  /** Offers to take the answer to a deleted message back, or takes it back, as is configured. */
  onDeleted(event: DeletedEvent, signal: AbortSignal): Promise<void>;
  /** Shows another one of the answers to a question. Resolves to a sentence for the person when it does not. */
  show(event: ActionEvent, signal: AbortSignal): Promise<string | undefined>;
  /** Takes an answer back. Resolves like `show`. */
  remove(event: ActionEvent): Promise<string | undefined>;
}

export interface SecondThoughtsDeps extends TakeBackDeps {
  records: Pick<TurnRecords, "load" | "save" | "answerTo" | "eraseGiven">;
  history: Pick<History, "read" | "find" | "append" | "remove">;
  ledger: Pick<Ledger, "open">;
  scheduler: Scheduler;
  sinkOf: SinkOf;
  /** The answer to a question goes with it; else a button takes it back. */
  removesWithQuestion: boolean;
  log: Logger;
}

export function createSecondThoughts(deps: SecondThoughtsDeps): SecondThoughts {
  const { records, history, ledger } = deps;

  /** A record whose answer has its end, or a sentence for the person. */
  async function findOwn(event: ActionEvent): Promise<TurnRecord | string> {
    const record = await records.load(readEditionId(event.turnId).turnId);
    if (record === undefined) return TOO_OLD;
    if (!mayPress(event, record)) return NOT_YOURS;
    record.reply = toPressedReply(event, record, record.posted.length);
    return record.phase === "final" ? record : STILL_WRITTEN;
  }

  return {
    async onEdited({ key, conversationId, author, reply, at, messageId, text, attachments }) {
      const record = await records.answerTo(messageId);
      if (record?.phase !== "final" || record.waits || record.posted.length === 0) return undefined;
      if (!(await isChanged(history, record, { messageId, text, attachments }))) return undefined;
      await (await ledger.open(record.id)).restart(true);
      const turnId = toEditionId(record.id, record.edition);
      const again = { key: `${key}:again`, conversationId, author, reply, at, turnId };
      return { kind: "action", ...again, action: "regenerate", isSpoken: true };
    },

    async isLeftBehind(messageId) {
      const place = await history.find(messageId);
      const record = place && (await records.load(place.entryId));
      return record?.posted.includes(messageId) === false;
    },

    async onDeleted({ messageId }, signal) {
      const record = await records.answerTo(messageId);
      if (record?.phase !== "final" || record.waits || record.posted.length === 0) return;
      if (!(await isQuestionGone(history, record))) return;
      if (deps.removesWithQuestion) return takeBack(deps, record);
      const remove: Button = { action: "delete", turnId: record.id, label: "Delete this answer" };
      const isPartial = (await readAnswer(history, record))?.partial === true;
      const closing = { note: isPartial ? PART_WITHOUT_QUESTION : QUESTION_GONE, buttons: [remove] };
      await rewriteClosing(deps, record, closing, signal);
    },

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
      const uncertain = isNewest ? (await ledger.open(record.id)).uncertain() : [];
      const note = isNewest
        ? describeUncertain(uncertain)
        : `_Answer ${editions.indexOf(shown) + 1} of ${editions.length}: an earlier one._`;
      const sink = deps.adapterOf(record.reply.platform).sink(record.reply);
      const steps = toEditionButtons(record.id, numbers, shown.edition);
      const own = isNewest ? toAnswerButtons(record, sink) : [];
      const open = [toRerunButton(record.id, uncertain), ...steps, ...toExplainButton(record, sink)];
      const isPartial = isNewest && answer.partial === true;
      const closing = { note, buttons: uncertain.length > 0 ? open : [...steps, ...own], isPartial };
      await writeWhole(deps, { ...record, posted: [...record.posted] }, sink, toAnswerText(shown.messages), closing);
      return undefined;
    },

    async remove(event) {
      const record = await findOwn(event);
      if (typeof record === "string") return record;
      await takeBack(deps, record);
      return undefined;
    },
  };
}

/** False for an edit that says what the message said before: platforms tell of that as well. */
export async function isChanged(
  history: Pick<History, "read">,
  { conversationId }: Pick<TurnRecord, "conversationId">,
  { messageId, text, attachments }: Pick<EditedEvent, "messageId" | "text" | "attachments">,
): Promise<boolean> {
  const { entries } = await history.read(conversationId, { upToId: messageId, maxEntries: 1 });
  const before = entries.find(({ id }) => id === messageId);
  if (before === undefined) return false;
  const idsOf = (files: readonly { id: string }[] = []) => files.map(({ id }) => id).join();
  return before.messages[0]?.content !== text || idsOf(before.attachments) !== idsOf(attachments);
}

/** Puts a text that is known into the messages of an answer, into more or fewer of them where it needs that. */
async function writeWhole(
  { records, history, scheduler, log }: SecondThoughtsDeps,
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
  // Its further messages are found by people's replies, too.
  const answer = await readAnswer(history, record);
  if (answer !== undefined) await history.append(record.conversationId, answer, record.posted);
}
