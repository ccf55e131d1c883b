import type { ChatMessage, TokenUsage } from "../gateway/chunks.ts";
import type { HistoryEntry } from "../history/record.ts";
import type { TurnListener } from "../insight/turn-watch.ts";
import type { Actor } from "../port/catalogue.ts";
import type { ReplyAddress } from "../port/events.ts";
import type { ReplySink } from "../port/sink.ts";
import type { Spent, Unspent } from "../quota/cost.ts";
import { createProgress, type Progress } from "../reply/reply.ts";
import { createSteps, type Steps } from "../reply/steps.ts";
import type { Services } from "../services/services.ts";
import type { AnswerOptions } from "../settings/answer-options.ts";
import type { ChannelSettings } from "../settings/settings.ts";
import { quoteName } from "../text/quote-name.ts";
import { openLedger, type TurnLedger } from "../tools/ledger.ts";
import type { Tool } from "../tools/tool.ts";
import type { Amounts } from "../usage/usage.ts";
import { createPieces, type Pieces, type ShowPicture } from "./answer-pictures.ts";
import type { ReadContext } from "./context.ts";
import type { LateWrites } from "./late-writes.ts";
import { readAnswer } from "./posted-answer.ts";
import type { TurnRecord } from "./record.ts";
import type { TurnServices } from "./records.ts";
import { type Permits, readPermits } from "./rights.ts";
import type { Beginning } from "./running.ts";

export interface AttemptDeps extends TurnServices {
  readContext: ReadContext;
  lateWrites: LateWrites;
  tools: readonly Tool[];
  outside: OutsideTools;
  showPicture: ShowPicture;
}

/** Everything that an attempt knows before it asks the model. No field is reassigned. */
export interface Prepared {
  readonly deps: AttemptDeps;
  readonly record: TurnRecord;
  readonly beginning: Beginning;
  readonly queueSignal: AbortSignal;
  /** Aborts when `queueSignal` aborts, or when people interrupt the attempt. */
  readonly signal: AbortSignal;
  readonly channel: ChannelSettings;
  readonly options: AnswerOptions;
  readonly permits: Permits;
  readonly model: string;
  /** Sentences to show under the answer. */
  readonly notices: readonly string[];
  /** The earlier answer that this attempt replaces. */
  readonly before: HistoryEntry | undefined;
  readonly ledger: TurnLedger;
  readonly spending: Spending;
  readonly pieces: Pieces;
  readonly display: Display;
  /**
   * Seconds since the newest question was asked. If only the store has the question, seconds since the attempt started.
   */
  secondsSinceAsked(): number;
}

interface Display {
  readonly sink: ReplySink;
  readonly steps: Steps;
  readonly progress: Progress;
  readonly story: TurnListener;
}

/** Notes in the record that an attempt starts, reads settings, permissions and tool calls, and chooses the model. */
export async function prepare(
  deps: AttemptDeps,
  record: TurnRecord,
  beginning: Beginning,
  queueSignal: AbortSignal,
): Promise<Prepared> {
  const sink = deps.adapterOf(record.reply.platform).sink(record.reply, deps.right);
  const progress = createProgress(sink, deps.right, { action: "stop", turnId: record.id, label: "Stop" });
  progress.show("thinking");
  // Makes the record resumable. If its phase stayed final, no process would resume the turn after this process died.
  const phase = record.posted.length > 0 ? "posted" : "received";
  Object.assign(record, { attempts: record.attempts + 1, isRefused: false, phase });
  const [channel, permits, ledger] = await Promise.all([
    deps.settings.read(record.reply),
    readPermits(deps.access, record, beginning.pressedBy),
    openLedger(deps, record),
    deps.records.begin(record),
  ]);
  const { model, notice } = await chooseModel(deps, record, channel, permits);
  const before = record.edition > 1 ? await readAnswer(deps.history, record) : undefined;
  const askedAt = beginning.messages.at(-1)?.at ?? Date.now();
  const story = deps.watch.begin({ ...record, turnId: record.id, askedAt, model }, deps.right);
  return {
    deps,
    record,
    beginning,
    queueSignal,
    signal: AbortSignal.any([beginning.controller.signal, queueSignal]),
    channel,
    options: channel.options ?? {},
    permits,
    model,
    notices: [...beginning.notices, ...(notice === undefined ? [] : [notice])],
    before,
    ledger,
    spending: createSpending(deps, record, { model, maxTokens: channel.options?.maxTokens }),
    pieces: createPieces(deps.records, record),
    display: { sink, steps: createSteps(), progress, story },
    secondsSinceAsked: () => Math.max(0, Date.now() - askedAt) / 1_000,
  };
}

/** Chooses a model that the permissions allow. `notice` is set if that is not the channel's model. */
async function chooseModel(
  { models, model: configured }: AttemptDeps,
  record: TurnRecord,
  channel: ChannelSettings,
  permits: Permits,
): Promise<{ model: string; notice: string | undefined }> {
  const chosen = await models.choose(channel.model, record);
  const model = permits.chooseModel([chosen.model, models.usual(record), configured]);
  return { model, notice: model === chosen.model ? chosen.notice : describeOtherModel(chosen.model, model) };
}

function describeOtherModel(wanted: string, model: string): string {
  return `_${quoteName(model)} answered: you can't use this channel's model, ${quoteName(wanted)}._`;
}

export interface OutsideTools {
  /**
   * Resolves when each of the channel's servers is ready or has failed once. `off` names servers that are switched off.
   */
  tried(place: ReplyAddress, off: readonly string[]): Promise<void>;
  toolsOf(place: ReplyAddress, off: readonly string[]): readonly Tool[];
  /**
   * Resolves to the prompt that a message names, to a sentence for people if that prompt is unavailable, or to
   * undefined if the message names none.
   */
  readPrompt(
    place: ReplyAddress,
    message: string,
    off: readonly string[],
    signal: AbortSignal,
  ): Promise<ChatMessage[] | string | undefined>;
}

/** Reserves quota for the tokens of each request, and counts the real use afterwards. */
export interface Spending {
  /** Reserves quota for a request. Rejects if a quota does not allow the request. */
  reserve(need: { number: number; promptTokens: number }, signal: AbortSignal): Promise<RequestQuota>;
  used: Readonly<Pick<Amounts, "promptTokens" | "completionTokens" | "estimatedTokens">>;
  /** Names the quota that makes the answer shorter. Undefined if none does. */
  tight(): string | undefined;
  /** Counts an answer once, even if it restarts. */
  noteAnswer(): Promise<void>;
  /** Resolves when all counting has ended or failed. */
  settled(): Promise<void>;
}

interface RequestQuota {
  /** How many tokens the answer can have. Undefined if the quota sets no limit. */
  maxTokens: number | undefined;
  /** Counts what the request really used, even if the answer was aborted. */
  settle(outcome: Answered | Unspent): void;
}

/** A request that got an answer. `model` is the model that answered. */
interface Answered {
  usage: TokenUsage;
  isEstimated: boolean;
  model: string;
  /** True if the answer calls no tool, so it ends the turn. */
  isAnswer: boolean;
}

/** `maxTokens` is the channel's length limit for answers, if it has one. */
export function createSpending(
  { quota, usage, metrics }: Services,
  { id, edition, author, reply }: Actor & { id: string; edition: number },
  { model, maxTokens }: { model: string; maxTokens: number | undefined },
): Spending {
  const by = { author, reply, model };
  const used = { promptTokens: 0, completionTokens: 0, estimatedTokens: 0 };
  const settling: Array<Promise<void>> = [];
  const answer = { id: `answer:${id}:${edition}`, by };
  let tight: string | undefined;
  let answerCounted: Promise<void> | undefined;

  function note({ prompt_tokens, completion_tokens }: TokenUsage, isEstimated: boolean): void {
    metrics.tokens("prompt", prompt_tokens, isEstimated);
    metrics.tokens("completion", completion_tokens, isEstimated);
    used.promptTokens += prompt_tokens;
    used.completionTokens += completion_tokens;
    if (isEstimated) used.estimatedTokens += prompt_tokens + completion_tokens;
  }

  return {
    used,
    tight: () => tight,
    noteAnswer: () => answerCounted ?? usage.note(answer.id, answer.by, { answers: 1 }),
    settled: async () => void (await Promise.all(settling)),
    async reserve({ number, promptTokens }, signal) {
      const need = { id: `${id}:${edition}:${number}`, by, promptTokens, maxTokens };
      const reservation = await quota.reserve(need, signal);
      tight = reservation.tight;
      return {
        maxTokens: reservation.maxTokens,
        // Counts in the background, because a slow store must not delay the answer.
        settle(outcome) {
          const isAnswer = typeof outcome !== "string" && outcome.isAnswer;
          if (typeof outcome !== "string") note(outcome.usage, outcome.isEstimated);
          const spent = typeof outcome === "string" ? outcome : toSpent(outcome);
          const settled = reservation.settle(spent, isAnswer ? answer : undefined);
          if (isAnswer) answerCounted = settled;
          settling.push(settled);
        },
      };
    },
  };
}

function toSpent({ usage, isEstimated, model }: Answered): Spent {
  const { prompt_tokens: promptTokens, completion_tokens: completionTokens, cached_tokens: cachedTokens, cost } = usage;
  return { promptTokens, completionTokens, cachedTokens, isEstimated, cost, model };
}
