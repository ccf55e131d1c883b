import { mapBounded } from "../concurrency/deadlines.ts";
import type { AssistantMessage, ChatMessage, ImagePart, ToolMessage } from "../gateway/chunks.ts";
import type { Step } from "../port/sink.ts";
import { isUncertain, type LedgerCall, type LedgerRound, type TurnLedger, toToolCall } from "./ledger.ts";
import { showArguments } from "./show-arguments.ts";
import {
  type CallOutcome,
  describeCall,
  describeUnknown,
  type FoundPlaces,
  type ReadyCall,
  readCall,
  runCall,
  type Tool,
  type ToolContext,
  toResult,
  toStepTitle,
} from "./tool.ts";

const MAX_PARALLEL_CALLS = 4;
const MAX_CALLS_PER_ROUND = 16;
/** Maximum length of arguments that a user must approve, so that the user can read all of them. */
const MAX_SHOWN_CHARS = 6_000;

const NOT_KEPT = "Not run: tool calls cannot be recorded at the moment. Answer without it, and say so.";
const DENIED = "Not run: the user did not allow this call. Do not make it again unless the user asks for it.";
/** Stored instead of the result of a fleeting tool. */
const NOT_STORED = "(This result was not stored. Call it again if you need it.)";
const BEFORE_EDIT = "\n(This call was made before the question was last edited.)";

export interface RoundDeps {
  tools: readonly Tool[];
  context: ToolContext;
  ledger: TurnLedger;
  /** Resolves to true if a user has permitted all calls of the tool in this conversation. */
  isAllowed(toolName: string): Promise<boolean>;
  /** Called with the progress and the index of a running call of the round. Not called if the call is aborted. */
  onStep(step: Step): void;
}

export interface RoundResult {
  /** One result per call, in order, even if ids repeat. */
  results: ToolMessage[];
  pictures: ImagePart[];
  /** True if some calls have no result yet, because a user must first decide about them. */
  isWaiting: boolean;
}

/**
 * Runs a round's calls in parallel, and records each call before and after it runs. `number` starts at 1. If an earlier
 * attempt started the round, its results stay, and the model learns which calls are uncertain. Rejects only with the
 * signal's reason.
 */
export async function runRound(
  answer: AssistantMessage,
  number: number,
  deps: RoundDeps,
  signal: AbortSignal,
): Promise<RoundResult> {
  const { ledger } = deps;
  const round = ledger.rounds[number - 1] ?? (await planRound(answer, deps));
  const pictures: ImagePart[][] = [];
  const results = await mapBounded(round.calls, MAX_PARALLEL_CALLS, async (call, index) => {
    signal.throwIfAborted();
    const text = await settleCall(call, index, round, deps, (shown) => void (pictures[index] = shown), signal);
    return toResult(toToolCall(call), round.isBeforeEdit ? text + BEFORE_EDIT : text);
  });
  return { results, pictures: pictures.flat().filter(Boolean), isWaiting: ledger.waiting() !== undefined };
}

/** Records a round. If the store fails, only calls that change nothing run. */
async function planRound({ content, tool_calls: calls = [] }: AssistantMessage, deps: RoundDeps): Promise<LedgerRound> {
  const { tools, context, ledger, isAllowed } = deps;
  const planned: LedgerCall[] = [];
  let shownChars = 0;
  for (const [index, { id, function: asked }] of calls.entries()) {
    const ready = readCall({ id, type: "function", function: asked }, tools);
    const { tool, args }: Partial<ReadyCall> = typeof ready === "string" ? {} : ready;
    const call: LedgerCall = {
      id,
      name: asked.name,
      arguments: asked.arguments,
      state: "planned",
      acts: tool?.acts === true,
    };
    const refusal = index < MAX_CALLS_PER_ROUND ? typeof ready === "string" && ready : TOO_MANY;
    if (refusal) Object.assign(call, { state: "failed", result: refusal });
    else if (isRepeated(call, ledger)) Object.assign(call, { state: "failed", result: describeUnknown(call.name) });
    else if (tool?.approval !== undefined && !(await isAllowedHere(tool, isAllowed))) {
      shownChars += showArguments(args).length;
      if (shownChars > MAX_SHOWN_CHARS) Object.assign(call, { state: "failed", result: TOO_LONG });
      else call.asks = true;
    }
    planned.push(call);
  }
  const round: LedgerRound = { v: 1, content, calls: planned, at: Date.now() };
  try {
    await ledger.plan(round);
  } catch (error) {
    context.onFailure?.("ledger", error);
    for (const call of planned) if (call.acts || call.asks) Object.assign(call, { state: "failed", result: NOT_KEPT });
  }
  return round;
}

const TOO_MANY = `Not run: at most ${MAX_CALLS_PER_ROUND} calls can run at once. Call it again if needed.`;
const TOO_LONG = `Not run: a user must read the arguments of a call before it runs, and these have more than ${MAX_SHOWN_CHARS} characters. Send shorter arguments, one call at a time.`;

/** True if an equal call with another id may already have run. */
function isRepeated(call: LedgerCall, { rounds }: TurnLedger): boolean {
  const isSame = (other: LedgerCall) => other.name === call.name && other.arguments === call.arguments;
  return call.acts && rounds.some(({ calls }) => calls.some((other) => isUncertain(other) && isSame(other)));
}

async function isAllowedHere({ name }: Tool, isAllowed: RoundDeps["isAllowed"]): Promise<boolean> {
  try {
    return await isAllowed(name);
  } catch {
    // Asking the user again is harmless.
    return false;
  }
}

/** Resolves to a call's result, or to "" if the call waits for a user. */
async function settleCall(
  call: LedgerCall,
  index: number,
  round: LedgerRound,
  deps: RoundDeps,
  onPictures: (pictures: ImagePart[]) => void,
  signal: AbortSignal,
): Promise<string> {
  const { tools, ledger } = deps;
  if (call.state === "denied") return call.result ?? DENIED;
  if (isUncertain(call)) {
    const result = describeUnknown(call.name);
    if (call.state === "started") await keepNote(deps, () => ledger.note(round, call, { state: "unknown", result }));
    return result;
  }
  const isSettled = call.state !== "planned" && call.state !== "approved" && call.state !== "started";
  if (isSettled && call.result !== NOT_STORED) return call.result ?? "";
  if (call.state === "planned" && call.asks) return "";
  const ready = readCall(toToolCall(call), tools);
  if (typeof ready === "string") {
    // This fleeting tool has already run, but the asker has since lost the permission for it.
    if (isSettled) return NOT_STORED;
    await keepNote(deps, () => ledger.note(round, call, { state: "failed", result: ready }));
    return ready;
  }
  const isNoted = await keepNote(deps, () => ledger.note(round, call, { state: "started" }));
  if (!isNoted && call.acts) return NOT_KEPT;
  const onFound = (found: FoundPlaces) => void (call.found = found);
  const { state, text, pictures, sources } = await runShown(
    ready,
    index,
    { ...deps, context: { ...deps.context, onFound } },
    signal,
  );
  const result = state === "done" && ready.tool.isFleeting ? NOT_STORED : text;
  const from = sources.length > 0 ? { sources } : {};
  await keepNote(deps, () => ledger.note(round, call, { state, result, ...from }));
  onPictures(pictures);
  return text;
}

/** Returns a turn's messages for storage, without the results of fleeting tools. */
export function toStorable(messages: readonly ChatMessage[], tools: readonly Tool[]): ChatMessage[] {
  const fleeting = new Set(tools.flatMap(({ name, isFleeting }) => (isFleeting ? name : [])));
  /** The calls whose results follow, in order. An id can occur in several rounds. */
  let called: string[] = [];
  return messages.map((message) => {
    if (message.role === "assistant") called = (message.tool_calls ?? []).map((call) => call.function.name);
    const name = message.role === "tool" ? called.shift() : undefined;
    return name !== undefined && fleeting.has(name) ? { ...message, content: NOT_STORED } : message;
  });
}

/** Resolves to true if the store accepted the write. */
async function keepNote({ context }: RoundDeps, write: () => Promise<void>): Promise<boolean> {
  try {
    await write();
    return true;
  } catch (error) {
    context.onFailure?.("ledger", error);
    return false;
  }
}

async function runShown(
  ready: ReadyCall,
  index: number,
  { context, onStep }: RoundDeps,
  signal: AbortSignal,
): Promise<CallOutcome> {
  let step: Step = { id: String(index), title: describeCall(ready), state: "running" };
  const report = (news: Partial<Step>) => onStep((step = { ...step, ...news }));
  report({});
  const onProgress = (text: string) => report({ title: toStepTitle(text) || step.title });
  const outcome = await runCall(ready, { ...context, onProgress }, signal);
  const { state, sources } = outcome;
  report({ state: state === "done" ? "done" : "failed", ...(sources.length > 0 && { sources }) });
  return outcome;
}
