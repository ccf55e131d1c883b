import { isAborted } from "../concurrency/abort.ts";
import { untilAborted, waitAtMost } from "../concurrency/deadlines.ts";
import { type ChatMessage, textOf } from "../gateway/chunks.ts";
import type { Fallback } from "../gateway/client.ts";
import type { History } from "../history/history.ts";
import { readPromptCall } from "../mcp/prompts.ts";
import type { Step } from "../port/sink.ts";
import type { OnText } from "../reply/reply.ts";
import { describeRunning, rendersSteps } from "../reply/steps.ts";
import { createThinking, type Thinking } from "../reply/thinking.ts";
import { holdText, toRunPrompt } from "../schedules/silence.ts";
import type { AnswerOptions } from "../settings/answer-options.ts";
import type { ChannelSettings } from "../settings/settings.ts";
import { chooseTools } from "../tools/choice.ts";
import { MAX_ROUNDS, NO_LEDGER, toToolCall } from "../tools/ledger.ts";
import type { Tool } from "../tools/tool.ts";
import { type AnswerPictures, createAnswerPictures } from "./answer-pictures.ts";
import type { Context } from "./context.ts";
import { PICTURES_OF_TOOLS, WAITS } from "./endings.ts";
import { runTurn, type TurnDeps } from "./model-loop.ts";
import { editionOf, toAnswerText } from "./posted-answer.ts";
import type { Prepared } from "./prepare.ts";
import type { TurnRecord } from "./record.ts";
import { readBegun, repeatShownText } from "./resume.ts";
import { type AnswerSources, createAnswerSources } from "./sources.ts";
import { describeWaiting } from "./tool-approval.ts";
import { type CallTimes, createCallTimes, EMPTY_SUMMARY } from "./trace.ts";

export interface Produced {
  hasText: boolean;
  /** The model that answers instead of the chosen one. */
  fallback: Fallback | undefined;
  /** The names of the adaptations that the requests needed. */
  readonly dropped: Set<string>;
  /** Empty until the context is read. The model loop then appends its messages. */
  context: Context;
  /** How many messages the context had when the model loop started. */
  askedCount: number;
  /** True if the model produced nothing, so the previous answer stays. */
  isInVain: boolean;
  /** True if a scheduled run had nothing to say. */
  isSilent: boolean;
  readonly thinking: Thinking;
  readonly callTimes: CallTimes;
  readonly pictures: AnswerPictures;
  readonly sources: AnswerSources;
}

export function createProduced(prepared: Prepared): Produced {
  const { deps, record, beginning, pieces, model, ledger, display } = prepared;
  const produced: Produced = {
    hasText: false,
    fallback: undefined,
    dropped: new Set(),
    context: { messages: [], notices: [], files: [], oldestShownId: undefined, given: EMPTY_SUMMARY },
    askedCount: 0,
    isInVain: false,
    isSilent: false,
    thinking: createThinking({ onTell: (words) => showBeside(prepared, produced, words) }),
    callTimes: createCallTimes(Date.now),
    pictures: createAnswerPictures(deps.showPicture, {
      record,
      messages: beginning.messages,
      begin: pieces.begin,
      answering: () => produced.fallback?.model ?? model,
    }),
    sources: createAnswerSources({ before: record.cited ?? [], ledger, steps: display.steps }),
  };
  return produced;
}

/** Reads the context, asks the model, and runs the tools that it calls. Resolves to the same value as `runTurn`. */
export async function produce(prepared: Prepared, produced: Produced, onText: OnText): Promise<string> {
  const { deps, record, beginning, channel, options, permits, signal, display } = prepared;
  const { context: channelMessages = deps.limits.contextMessages } = options;
  const { shownText } = record;
  // An earlier attempt's text, whose cited pages are in the record. If the ledger has rounds, it is unknown which of
  // these pages belong to the text.
  let earlier = prepared.ledger.rounds.length === 0 ? shownText?.trimEnd() : undefined;
  let emitted = "";
  const { scheduled } = record;
  const held = scheduled && holdText(onText);
  const show = held?.write ?? onText;
  const code = createJsonCode(show);
  const write = options.format === "json" ? code.write : show;
  deps.metrics.streamOpened();
  try {
    // If a question was edited, the permission to ask it has not been checked yet.
    const isAnother = beginning.changes.some(({ kind }) => kind === "edited");
    permits.check(...(isAnother ? (["chat"] as const) : []), `model:${prepared.model}`);
    const ownPrompt = toSystemPrompt(channel, deps.systemPrompt);
    const systemPrompt = scheduled === undefined ? ownPrompt : `${ownPrompt}\n\n${toRunPrompt(scheduled.when)}`;
    const contextOptions = { systemPrompt, channelMessages, showsFiles: permits.may("files") };
    const context = await deps.readContext(record, beginning.messages, contextOptions, signal);
    context.notices.unshift(...prepared.notices);
    produced.context = context;
    produced.askedCount = context.messages.length;
    const prompted = await readPrompt(prepared);
    if (typeof prompted === "string") {
      onText(prompted);
      return "stop";
    }
    // The model gets the messages of the prompt, but the history stores only the person's own words.
    context.messages.push(...prompted);
    produced.askedCount = context.messages.length;
    const emit = (text: string) => {
      if (emitted === "") deps.metrics.firstToken(prepared.secondsSinceAsked());
      if (emitted === "") display.story.firstToken();
      emitted += text;
      if (earlier !== undefined && !isBeginning(earlier, emitted)) {
        // The model gives a different answer, so the pages of the earlier text are dropped.
        produced.sources.cite(0, []);
        earlier = undefined;
      }
      // Removes the progress line, which must not stay next to the text.
      if (produced.thinking.pause() && record.posted.length > 0) display.progress.show("");
      produced.hasText = true;
      if (options.thinking === "shown") show(produced.thinking.takeQuote(display.sink.traits?.foldedQuotes === true));
      write(text);
    };
    const finish = await runTurn(context.messages, toTurnDeps(prepared, produced), emit, signal);
    code.end();
    if (finish === WAITS) held?.release();
    else if (held?.end() === false) produced.isSilent = true;
    if (finish === WAITS) {
      // The calls are part of the reply's text, because they can have any length. The history does not store them.
      const calls = prepared.ledger.waiting()?.calls ?? [];
      onText(`\n\n${describeWaiting(calls, toOffered(prepared, context))}`);
    }
    return finish;
  } catch (error) {
    held?.release();
    // After an error, people keep what they have read, unless the next attempt or an erasure will change the messages.
    if (!isAborted(signal, "superseded", "forgotten")) {
      if (shownText !== undefined) repeatShownText(produced.context.messages, shownText, emitted, onText);
      else if (emitted === "") repeatWritten(prepared, produced, onText);
    }
    throw error;
  } finally {
    deps.metrics.streamClosed();
  }
}

function isBeginning(one: string, other: string): boolean {
  return one.startsWith(other) || other.startsWith(one);
}

/** Shows next to the reply what the answer waits for, unless the reply's own message already shows that. */
export function showBeside({ record, display }: Prepared, { hasText }: Produced, words: string): void {
  if (record.posted.length === 0 || hasText) display.progress.show(words);
}

function repeatWritten({ record, before }: Prepared, produced: Produced, onText: OnText): void {
  const { messages, written = before } = produced.context;
  if (written === undefined) return;
  const text = toAnswerText(written.messages);
  if (text === "") return;
  messages.push(...written.messages);
  produced.sources.replace(written.sources ?? []);
  produced.isInVain = before !== undefined && editionOf(before) !== record.edition;
  onText(text);
}

function toTurnDeps(prepared: Prepared, produced: Produced): TurnDeps {
  const { deps, record, beginning, model, ledger, permits, display, pieces, spending } = prepared;
  const { gateway, metrics, log } = deps;
  const { context, thinking } = produced;
  const { mustAsk } = beginning;
  const { story, progress } = display;
  const shownText = readBegun(record, ledger);
  return {
    gateway,
    tools: toOffered(prepared, context),
    ledger,
    isAllowed: (toolName) => deps.ledger.isAllowed(record.conversationId, toolName),
    model,
    fields: toFields(prepared.options),
    ...(shownText !== undefined && { shownText, isShownWhole: record.isShownWhole === true }),
    maxRounds: MAX_ROUNDS,
    mustAsk,
    context: {
      conversationId: record.conversationId,
      files: context.files,
      ...(context.oldestShownId !== undefined && { oldestShownId: context.oldestShownId }),
      turn: {
        id: record.id,
        author: record.author,
        reply: record.reply,
        mustAsk,
        nextPiece: pieces.next,
        ...(record.scheduled && { isScheduled: true }),
      },
      onFailure: (tool, err) => log.warn({ err, tool, turnId: record.id }, "a tool failed"),
    },
    user: deps.pseudonym(record.reply.platform, record.author.id),
    // The attempt is part of the id, because the steps of an earlier attempt can still be visible.
    onStep: (step) => noteStep(prepared, produced, { ...step, id: `${record.attempts}.${step.id}` }),
    onReasoning: thinking.add,
    showPictures: produced.pictures.show,
    onCited: produced.sources.cite,
    onRetry: ({ waitMs, error }) => {
      thinking.restart();
      story.retry(waitMs, error.kind);
      if (error.kind === "rate-limited") metrics.rateLimited("gateway");
      progress.show(`the model is not available; asking again in ${Math.max(1, Math.round(waitMs / 1_000))} s`);
    },
    reserve: spending.reserve,
    onAdapted(names, hasPicturesOfTools) {
      for (const name of names) produced.dropped.add(name);
      if (hasPicturesOfTools && names.includes("pictures")) produced.dropped.add(PICTURES_OF_TOOLS);
    },
    mayAsk: (other) => deps.models.isOffered(other, record) && permits.may(`model:${other}`),
    onFallback: (fallback) => {
      thinking.restart();
      produced.fallback = fallback;
      if (fallback === undefined) return progress.show("asking the model again");
      story.note(`Asked ${fallback.isSecondGateway ? "the second gateway" : "another model"}`);
      metrics.fellBack(fallback.isSecondGateway ? "gateway" : "model");
      const other = fallback.isSecondGateway ? "the second AI service" : "another model";
      progress.show(`the model is not available; asking ${other}`);
    },
  };
}

function noteStep({ record, display }: Prepared, { thinking, callTimes }: Produced, step: Step): void {
  const { sink, steps, story, progress } = display;
  thinking.pause();
  story.step(step.state);
  callTimes.note(step);
  steps.note(step);
  const words = describeRunning(steps.all);
  // A reply that has been posted shows its own steps.
  const isInReply = rendersSteps(sink) && record.posted.length > 0;
  if (words !== "" && !isInReply) progress.show(words);
}

/** If there are too many tools for one request, this many of people's newest messages decide which tools to offer. */
const MESSAGES_TO_CHOOSE_BY = 2;

/** How long a resumed turn waits for its tool servers to start. */
const START_MS = 10_000;

/** The tools to offer in a request. Leaves out tools whose calls must be recorded if the ledger is unavailable. */
function toOffered({ deps, record, channel, permits, ledger }: Prepared, { messages }: Context): readonly Tool[] {
  const own = permits.chooseTools(deps.tools);
  const offered = permits.chooseTools(deps.outside.toolsOf(record.reply, channel.serversOff ?? []));
  const possible = ledger === NO_LEDGER ? offered.filter(({ acts }) => !acts) : offered;
  if (possible.length === 0) return own;
  const question = messages.filter(({ role }) => role === "user").slice(-MESSAGES_TO_CHOOSE_BY);
  const calls = [
    ...messages.flatMap((message) => (message.role === "assistant" ? (message.tool_calls ?? []) : [])),
    ...ledger.rounds.flatMap(({ calls }) => calls.map(toToolCall)),
  ];
  const called = new Set(calls.map((call) => call.function.name));
  return chooseTools(own, possible, { question: question.map(textOf).join("\n"), called });
}

/**
 * Resolves to the messages of the prompt that a question names. Resolves to no messages if the question names no
 * prompt, or to a sentence for people if the prompt is unavailable. A resumed turn first waits for its servers, because
 * the tools that it called before must be available again.
 */
async function readPrompt(prepared: Prepared): Promise<ChatMessage[] | string> {
  const { record, beginning, channel, permits, signal } = prepared;
  const { outside, history } = prepared.deps;
  const { serversOff = [] } = channel;
  if (record.attempts > 1 || record.posted.length > 0) {
    await untilAborted(waitAtMost(outside.tried(record.reply, serversOff), START_MS), signal);
  }
  const asked = beginning.messages.at(-1)?.text ?? (await readQuestion(history, record));
  const call = readPromptCall(asked);
  const refusal = call && permits.findRefusal(`tool:${call.server}__${call.name}`);
  if (refusal !== undefined) return refusal;
  return (await outside.readPrompt(record.reply, asked, serversOff, signal)) ?? [];
}

async function readQuestion(history: History, { conversationId, messageIds }: TurnRecord): Promise<string> {
  const upToId = messageIds.at(-1);
  if (upToId === undefined) return "";
  const { entries } = await history.read(conversationId, { maxEntries: 1, upToId });
  return entries.flatMap((entry) => entry.messages.map(textOf)).at(-1) ?? "";
}

const ONLY_JSON = "Answer with one JSON object and nothing else.";

/** Adds a request for JSON to the prompt, because many models return JSON only if the prompt says so too. */
function toSystemPrompt({ persona, options }: ChannelSettings, usual: string): string {
  const prompt = persona ?? usual;
  return options?.format === "json" ? `${prompt}\n\n${ONLY_JSON}` : prompt;
}

/** Shows JSON as a code block, so that Markdown does not change it. Passes any other answer on unchanged. */
function createJsonCode(onText: OnText): { write: OnText; end(): void } {
  let isCode: boolean | undefined;
  return {
    write(text) {
      if (isCode === undefined && text.trim() !== "") {
        isCode = /^\s*[[{]/.test(text);
        if (isCode) onText("```json\n");
      }
      onText(text);
    },
    end() {
      if (isCode === true) onText("\n```");
    },
  };
}

function toFields({ temperature, maxTokens, format, web }: AnswerOptions): TurnDeps["fields"] {
  return {
    ...(temperature !== undefined && { temperature }),
    ...(maxTokens !== undefined && { max_tokens: maxTokens }),
    ...(format !== undefined && { response_format: { type: "json_object" } }),
    ...(web !== undefined && { web_search_options: { search_context_size: web } }),
  };
}
