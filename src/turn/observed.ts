import type { Logger } from "pino";
import type { Usage } from "../gateway/chunks.ts";
import type { Gateway, RetryNotice } from "../gateway/client.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { MessageEvent } from "../port/events.ts";
import { toTurnId } from "../port/ids.ts";
import type { Step } from "../port/sink.ts";
import type { OnText } from "../reply/reply.ts";
import type { Tool } from "../tools/tool.ts";
import type { Amounts } from "../usage/usage.ts";
import type { Context, ReadContext } from "./context.ts";
import type { TurnRecord } from "./record.ts";
import { runTurn, type TurnDeps } from "./turn.ts";

const MAX_ROUNDS = 8;

export interface TurnEventDeps {
  gateway: Gateway;
  tools: readonly Tool[];
  readContext: ReadContext;
  pseudonym(platform: string, userId: string): string;
  metrics: Metrics;
  log: Logger;
}

/** The context, to whose messages the turn adds its own, and how many of them were there before. */
export interface Asked extends Context {
  count: number;
}

/** As `Amounts` has it. */
export type TokenCount = Pick<Amounts, "promptTokens" | "completionTokens" | "estimatedTokens">;

/** One attempt at a turn, as far as its events go. */
export interface ObservedTurn {
  deps: TurnEventDeps;
  record: TurnRecord;
  messages: readonly MessageEvent[];
  /** The ones in use, for the whole of the attempt. */
  model: string;
  systemPrompt: string;
  signal: AbortSignal;
  /** A person pressed Retry. */
  mustAsk: boolean;
  /** Shows what is waited for besides the calls of tools. */
  show(progress: string): void;
  noteStep(step: Step): void;
  /** Unix milliseconds. */
  acceptedAt: number;
  /** Set once it is read. */
  context: Asked;
  /** Tokens of the attempt so far. */
  used: TokenCount;
  /** Ids of what the attempt made for people to see, besides the answer. */
  pieces: string[];
}

/** Runs the turn, beginning with what it asks; what is measured of it is taken on the way. Resolves as `runTurn` does. */
export async function runObserved(observed: ObservedTurn, onText: OnText): Promise<string> {
  const { deps, record, messages, signal } = observed;
  const context = await deps.readContext(record, messages, observed.systemPrompt, signal);
  observed.context = { ...context, count: context.messages.length };
  let first = true;
  deps.metrics.streamOpened();
  try {
    const onFirst = (text: string) => {
      if (first) deps.metrics.firstToken(secondsSince(observed.acceptedAt));
      first = false;
      onText(text);
    };
    return await runTurn(context.messages, toTurn(observed), onFirst, signal);
  } catch (error) {
    // Asked once more in vain: people keep what they have read.
    if (first && !isTakenOver(signal)) repeatWritten(context, onText);
    throw error;
  } finally {
    deps.metrics.streamClosed();
  }
}

/** Whether what stands there is somebody else's to change. */
function isTakenOver({ reason }: AbortSignal): boolean {
  return reason === "superseded" || reason === "forgotten" || reason === "shutdown";
}

function repeatWritten({ messages, written }: Context, onText: OnText): void {
  const texts = written.flatMap(({ role, content }) =>
    role === "assistant" && typeof content === "string" ? content : [],
  );
  const text = texts.filter(Boolean).join("\n\n");
  if (text === "") return;
  messages.push(...written);
  onText(text);
}

function toTurn(observed: ObservedTurn): TurnDeps {
  const { deps, record, model, mustAsk, show, noteStep, context, used, pieces } = observed;
  const { gateway, tools, metrics, log } = deps;
  return {
    gateway,
    tools,
    model,
    maxRounds: MAX_ROUNDS,
    mustAsk,
    toolContext: {
      conversationId: record.conversationId,
      ...(context.oldestShownId !== undefined && { oldestShownId: context.oldestShownId }),
      turn: {
        author: record.author,
        reply: record.reply,
        nextPiece() {
          const index = pieces.length;
          const id = toTurnId(`${record.id}:made:${(record.made ?? 0) + index}`);
          const after = pieces.at(-1) ?? record.messageIds.at(-1);
          pieces.push(id);
          return { index, id, after };
        },
      },
      onFailure: (tool: string, err: unknown) => log.warn({ err, tool, turnId: record.id }, "a tool failed"),
    },
    user: deps.pseudonym(record.reply.platform, record.author.id),
    // What an earlier attempt did may still be shown.
    onStep: (step) => noteStep({ ...step, id: `${record.attempts}.${step.id}` }),
    onRetry: ({ waitMs, error }: RetryNotice) => {
      if (error.kind === "rate-limited") metrics.rateLimited("gateway");
      show(`the model is not available; asking again in ${Math.max(1, Math.round(waitMs / 1_000))} s`);
    },
    onUsage: (usage: Usage, estimated: boolean) => {
      metrics.tokens("prompt", usage.prompt_tokens, estimated);
      metrics.tokens("completion", usage.completion_tokens, estimated);
      used.promptTokens += usage.prompt_tokens;
      used.completionTokens += usage.completion_tokens;
      if (estimated) used.estimatedTokens += usage.prompt_tokens + usage.completion_tokens;
    },
  };
}

export function secondsSince(unixMs: number): number {
  return Math.max(0, Date.now() - unixMs) / 1_000;
}
