// How people approve tool calls: the text and buttons for calls that wait or may have run, and the effect of a
// decision. `runRound` stops the turn until the decision. The ledger stores the state of each call.
import { createHash } from "node:crypto";
import type { ActionEvent } from "../port/events.ts";
import { readCallsId, toCallsId } from "../port/ids.ts";
import type { Button } from "../port/sink.ts";
import { quoteName } from "../text/quote-name.ts";
import { type LedgerCall, type TurnLedger, toToolCall, type WaitingCalls } from "../tools/ledger.ts";
import { showArguments } from "../tools/show-arguments.ts";
import { readCall, type Tool } from "../tools/tool.ts";
import { rewriteClosing } from "./posted-answer.ts";
import type { TurnRecord } from "./record.ts";
import type { TurnServices } from "./records.ts";

/** How long tool calls wait for a person's approval. */
const MAX_WAIT_MS = 86_400_000;

/**
 * Describes calls that wait for approval, in Markdown: each with its server and all arguments that the server would
 * get.
 */
export function describeWaiting(calls: readonly LedgerCall[], tools: readonly Tool[]): string {
  const cards = calls.map((call) => {
    const server = tools.find(({ name }) => name === call.name)?.approval?.server;
    const of = server === undefined ? "" : ` of the server ${quoteName(server)}`;
    const shown = showArguments(readArguments(call, tools));
    const fence = "`".repeat(Math.max(3, ...Array.from(shown.matchAll(/`+/g), ([run]) => run.length + 1)));
    return `**May I use ${quoteName(call.name)}**${of}?\n\n${fence}json\n${shown}\n${fence}`;
  });
  return cards.join("\n\n");
}

/** Returns the arguments as the tool would get them, or as the model wrote them if the tool is unavailable. */
function readArguments(call: LedgerCall, tools: readonly Tool[]): unknown {
  const ready = readCall(toToolCall(call), tools);
  if (typeof ready !== "string") return ready.args;
  try {
    return JSON.parse(call.arguments);
  } catch {
    return call.arguments;
  }
}

export function toWaitingButtons(turnId: string, waiting: WaitingCalls): Button[] {
  const id = toCallsId(turnId, toDigest(waiting.calls, waiting.at));
  return [
    { action: "approve", turnId: id, label: "Approve once" },
    { action: "always", turnId: id, label: "Always in this conversation" },
    { action: "deny", turnId: id, label: "Deny" },
  ];
}

export function toRerunButton(turnId: string, uncertain: readonly LedgerCall[]): Button {
  return { action: "rerun", turnId: toCallsId(turnId, toDigest(uncertain)), label: "Run it again" };
}

/**
 * 22 characters are 132 bits, so no one can find other calls with the same digest. A longer digest would not fit into
 * the button ids of some platforms.
 */
const DIGEST_CHARS = 22;

/** Identifies these calls and the time at which the bot asked about them. */
function toDigest(calls: readonly LedgerCall[], at = 0): string {
  const shown = calls.map(({ id, name, arguments: json, rerunBy = "" }) => [id, name, json, rerunBy]);
  return createHash("sha256")
    .update(JSON.stringify([at, shown]))
    .digest("base64url")
    .slice(0, DIGEST_CHARS);
}

/** Says which calls may have run without a result. "" if all calls have results. */
export function describeUncertain(calls: readonly LedgerCall[]): string {
  if (calls.length === 0) return "";
  const names = [...new Set(calls.map(({ name }) => quoteName(name)))].join(", ");
  return `_I don't know whether ${names} ran: I made the call and got no result. I won't repeat it on my own. Check first, then press Run it again if needed._`;
}

const CHANGED = "The request has changed. Read it again before you decide.";

/**
 * Applies a person's decision to the calls that the pressed button's message shows, and to no other calls. Resolves to
 * "go on", or to a refusal. Saves the record first, so that the same press continues the work after a crash.
 */
export async function decideCalls(
  deps: TurnServices,
  event: ActionEvent,
  record: TurnRecord,
  calls: TurnLedger,
  signal: AbortSignal,
): Promise<string> {
  const { records, ledger } = deps;
  const { digest } = readCallsId(event.turnId);
  const isFresh = record.phase === "final";
  const goOn = () => records.save({ ...record, phase: "posted", attempts: 0, seen: 0 });
  if (event.action === "rerun") {
    const uncertain = calls.uncertain();
    if (isFresh && uncertain.length === 0) return "There is nothing left to run again.";
    if (toDigest(uncertain) !== digest) return isFresh ? CHANGED : "go on";
    if (isFresh) await goOn();
    await calls.rerun(event.key);
    return "go on";
  }
  const waiting = calls.waiting();
  if (waiting === undefined || (isFresh && !record.waits)) return isFresh ? "This has already been decided." : "go on";
  if (toDigest(waiting.calls, waiting.at) !== digest) return isFresh ? CHANGED : "go on";
  if (event.at - waiting.at > MAX_WAIT_MS) {
    await cancelWaiting(deps, record, signal);
    return "This waited for more than a day, so I dropped it. Please ask again.";
  }
  if (isFresh) await goOn();
  if (event.action === "always") {
    await ledger.allow(
      record.conversationId,
      waiting.calls.map(({ name }) => name),
      { platform: event.reply.platform, id: event.author.id },
    );
  }
  const words = describeDecision(event);
  if (isFresh) await rewriteClosing(deps, record, { note: words, buttons: [] }, signal);
  await calls.decide(event.action === "deny" ? "denied" : "approved", words);
  return "go on";
}

function describeDecision({ action, author }: ActionEvent): string {
  const name = quoteName(author.name);
  if (action === "deny") return `_${name} did not allow that._`;
  return action === "always" ? `_${name} allowed that for this conversation._` : `_${name} allowed that once._`;
}

export async function cancelWaiting(deps: TurnServices, record: TurnRecord, signal: AbortSignal): Promise<void> {
  await (await deps.ledger.open(record)).decide("denied", "");
  const { waits: _, ...over } = record;
  await deps.records.save({ ...over, canRetry: true });
  await rewriteClosing(
    deps,
    record,
    { note: "_Stopped. I didn't make the calls that were waiting for your approval._", buttons: [] },
    signal,
  );
}
