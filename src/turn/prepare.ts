import type { ChatMessage, TokenUsage } from "../gateway/chunks.ts";
import type { HistoryEntry } from "../history/record.ts";
import type { TurnListener } from "../insight/turn-watch.ts";
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

/** Everything that an attempt knows before it asks the model. No field changes later. */
export interface Prepared {
  readonly deps: AttemptDeps;
  readonly record: TurnRecord;
  /** The questions, and people's edits and button presses during the attempt. */
  readonly beginning: Beginning;
  readonly queueSignal: AbortSignal;
  /** Aborts with `queueSignal`, and when people interrupt the attempt. */
  readonly signal: AbortSignal;
  /** The channel's settings. */
  readonly channel: ChannelSettings;
  readonly options: AnswerOptions;
  readonly permits: Permits;
  readonly model: string;
  /** Sentences to show under the answer. */
  readonly notices: readonly string[];
  /** The answer that this one replaces, if there is one. */
  readonly before: HistoryEntry | undefined;
  readonly ledger: TurnLedger;
  readonly spending: Spending;
  readonly pieces: Pieces;
  readonly display: Display;
  /**
   * Seconds since the newest question, by the platform's clock. If only the store has the question, seconds since the
   * start of this attempt.
   */
  secondsSinceAsked(): number;
}

/** Shows the attempt in its conversation and on the dashboard. */
interface Display {
  readonly sink: ReplySink;
  readonly steps: Steps;
  readonly progress: Progress;
  readonly story: TurnListener;
}

/**
 * Notes in the record that an attempt starts. Then reads settings, permissions and earlier tool calls, and chooses the
 * model.
 */
export async function prepare(
  deps: AttemptDeps,
  record: TurnRecord,
  beginning: Beginning,
  queueSignal: AbortSignal,
): Promise<Prepared> {
  const sink = deps.adapterOf(record.reply.platform).sink(record.reply, deps.right);
  const progress = createProgress(sink, deps.right, { action: "stop", turnId: record.id, label: "Stop" });
  progress.show("thinking");
  // A turn that restarts is no longer final. If this process dies now, another process resumes the turn.
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

/** `notice` is set if the model is not the one that was chosen for the channel. */
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

/** Says that the answer came from another model than the channel's. */
function describeOtherModel(wanted: string, model: string): string {
  return `_${quoteName(model)} answered: you can't use this channel's model, ${quoteName(wanted)}._`;
}

export interface OutsideTools {
  /** Resolves when each server of a channel is ready or has failed once. Ignores servers that are `off`. */
  tried(place: ReplyAddress, off: readonly string[]): Promise<void>;
  /** The tools that are offered in a channel. Leaves out those from servers that are `off` there. */
  toolsOf(place: ReplyAddress, off: readonly string[]): readonly Tool[];
  /** The prompt that a message names. A sentence if the prompt is unavailable. Undefined for any other message. */
  readPrompt(
    place: ReplyAddress,
    message: string,
    off: readonly string[],
    signal: AbortSignal,
  ): Promise<ChatMessage[] | string | undefined>;
}

/** The tokens of one attempt: reserved before each request, counted after it. */
export interface Spending {
  /** Reserves quota for a request. Rejects if a quota does not allow the request. */
  reserve(need: { number: number; promptTokens: number }, signal: AbortSignal): Promise<RequestQuota>;
  used: Readonly<Pick<Amounts, "promptTokens" | "completionTokens" | "estimatedTokens">>;
  /** Describes the limit that leaves the latest request less room than usual. */
  tight(): string | undefined;
  /** Counts the answer once, even if it restarts. */
  noteAnswer(): Promise<void>;
  /** Resolves when everything was counted or could not be counted. */
  settled(): Promise<void>;
}

/** One request's quota and usage. */
interface RequestQuota {
  /** Limits the answer's length. If undefined, only the settings limit it. */
  maxTokens: number | undefined;
  /** Counts the request's usage for the model that answered, even if the answer was aborted. */
  settle(outcome: Answered | Unspent): void;
}

/** The usage of one request, and the model that answered it. */
interface Answered {
  usage: TokenUsage;
  isEstimated: boolean;
  model: string;
  /** True if the text ends the turn because it calls no tool. */
  isAnswer: boolean;
}

/** `maxTokens` is the channel's length limit for answers, if it has one. */
function createSpending(
  { quota, usage, metrics }: Services,
  { id, edition, author, reply }: TurnRecord,
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
        // Runs in the background, because a slow store must not slow the answer down.
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
