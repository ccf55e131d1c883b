import { mapBounded } from "../concurrency/deadlines.ts";
import type { AssistantMessage, ImagePart, ToolMessage } from "../gateway/chunks.ts";
import type { Step } from "../port/sink.ts";
import { isUncertain, type LedgerCall, type LedgerRound, type TurnLedger, toToolCall } from "./ledger.ts";
import { showArguments } from "./show-arguments.ts";
import {
  type CallOutcome,
  describeCall,
  describeUnknown,
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
/** Longest arguments that a person is asked to approve: they have to be read in full. */
const MAX_SHOWN_CHARS = 6_000;

const NOT_KEPT =
  "Not run: what is done with tools cannot be written down at the moment. Answer without it, and say so.";
const DENIED = "Not run: a person did not allow this call. Do not make it again unless that person asks for it.";
const BEFORE_EDIT = "\n(This was before the question was changed to what it says now.)";

export interface RoundDeps {
  tools: readonly Tool[];
  context: ToolContext;
  ledger: TurnLedger;
  /** True when a person allowed every call of the tool in this conversation. */
  isAllowed(toolName: string): Promise<boolean>;
  /** Told of each call that runs, by its place in the round, and of what becomes of it; not of one that is cut short. */
  onStep(step: Step): void;
}

export interface RoundResult {
  /** In the order of the calls, one for each, also where ids repeat. */
  results: ToolMessage[];
  pictures: ImagePart[];
  /** A person has to decide about some of the calls first, so there are no results for them. */
  isWaiting: boolean;
}

/**
 * Runs a round's calls side by side, each written down before and after. `number` counts from 1. A round of an
 * earlier attempt keeps its results; uncertain calls are reported so. Rejects only with the signal's reason.
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

/** Writes a round down. Where the store takes nothing, what acts is not run, and the rest goes on without. */
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

const TOO_MANY = `Not run: only ${MAX_CALLS_PER_ROUND} calls are run at once. Call again if it is needed.`;
const TOO_LONG = `Not run: a person has to read what a call is given before it runs, and this is more than ${MAX_SHOWN_CHARS} characters. Call it with less, and one call at a time.`;

/** A call that may have been done is not made again under another number. */
function isRepeated(call: LedgerCall, { rounds }: TurnLedger): boolean {
  const isSame = (other: LedgerCall) => other.name === call.name && other.arguments === call.arguments;
  return call.acts && rounds.some(({ calls }) => calls.some((other) => isUncertain(other) && isSame(other)));
}

async function isAllowedHere({ name }: Tool, isAllowed: RoundDeps["isAllowed"]): Promise<boolean> {
  try {
    return await isAllowed(name);
  } catch {
    // Asking once more harms nobody.
    return false;
  }
}

/** Brings a call to its result. "" for one that waits for a person. */
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
  if (call.state !== "planned" && call.state !== "approved" && call.state !== "started") return call.result ?? "";
  if (call.state === "planned" && call.asks) return "";
  const ready = readCall(toToolCall(call), tools);
  if (typeof ready === "string") {
    await keepNote(deps, () => ledger.note(round, call, { state: "failed", result: ready }));
    return ready;
  }
  const isNoted = await keepNote(deps, () => ledger.note(round, call, { state: "started" }));
  if (!isNoted && call.acts) return NOT_KEPT;
  const { state, text, pictures } = await runShown(ready, index, deps, signal);
  await keepNote(deps, () => ledger.note(round, call, { state, result: text }));
  onPictures(pictures);
  return text;
}

/** Resolves to whether the store has taken the note. */
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
  const tell = (news: Partial<Step>) => onStep((step = { ...step, ...news }));
  tell({});
  const onProgress = (text: string) => tell({ title: toStepTitle(text) || step.title });
  const outcome = await runCall(ready, { ...context, onProgress }, signal);
  tell({ state: outcome.state === "done" ? "done" : "failed" });
  return outcome;
}
