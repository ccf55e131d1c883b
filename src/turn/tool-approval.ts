// How people allow the calls of tools: what they see of calls that wait for them or may have been done, and what becomes
// of their decision. The turn stops for it in `runRound`; the ledger knows how far each call has come.
import { createHash } from "node:crypto";
import type { ActionEvent } from "../port/events.ts";
import { readCallsId, toCallsId } from "../port/ids.ts";
import type { Button } from "../port/sink.ts";
import { quoteName } from "../text/quote-name.ts";
import { type Ledger, type LedgerCall, type TurnLedger, toToolCall, type WaitingCalls } from "../tools/ledger.ts";
import { showArguments } from "../tools/show-arguments.ts";
import { readCall, type Tool } from "../tools/tool.ts";
import { type CutAnswerDeps, showNote } from "./cut-answer.ts";
import { MAX_WAIT_MS, type TurnRecord, type TurnRecords } from "./record.ts";

/** Shows people the calls that they are to allow, each with its server and all that the server gets, as Markdown. */
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

/** The arguments as the tool gets them; those of a tool that is away, as the model wrote them. */
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

/** Makes calls once more that may have been done. */
export function toRerunButton(turnId: string, uncertain: readonly LedgerCall[]): Button {
  return { action: "rerun", turnId: toCallsId(turnId, toDigest(uncertain)), label: "Run it again" };
}

/** 132 bits: too many to find other calls with the same digest, and short enough for the ids of every platform. */
const DIGEST_CHARS = 22;

/** Identifies these calls as asked at this time: the same calls, asked again later, get another digest. */
function toDigest(calls: readonly LedgerCall[], at = 0): string {
  const shown = calls.map(({ id, name, arguments: json, rerunBy = "" }) => [id, name, json, rerunBy]);
  return createHash("sha256")
    .update(JSON.stringify([at, shown]))
    .digest("base64url")
    .slice(0, DIGEST_CHARS);
}

/** Tells people of calls that may have been done; "" for none. */
export function describeUncertain(calls: readonly LedgerCall[]): string {
  if (calls.length === 0) return "";
  const names = [...new Set(calls.map(({ name }) => quoteName(name)))].join(", ");
  return `_It is not known whether ${names} was done: the call was begun, and no result came. I do not make it again by myself. Look first; then press Run it again if it is needed._`;
}

const CHANGED = "This has changed: look at what it asks now.";

export interface ToolApprovalDeps extends CutAnswerDeps {
  ledger: Ledger;
  records: Pick<TurnRecords, "save">;
}

/**
 * Takes a person's decision about the calls of a turn that the button's message shows, and about no others. Resolves to
 * "go on", or to a refusal. The record is saved first: after a crash the same press finds what is left to do.
 */
export async function decideCalls(
  deps: ToolApprovalDeps,
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
    if (isFresh && uncertain.length === 0) return "There is nothing left here to run again.";
    if (toDigest(uncertain) !== digest) return isFresh ? CHANGED : "go on";
    if (isFresh) await goOn();
    await calls.rerun(event.key);
    return "go on";
  }
  const waiting = calls.waiting();
  if (waiting === undefined || (isFresh && !record.waits)) return isFresh ? "This was decided already." : "go on";
  if (toDigest(waiting.calls, waiting.at) !== digest) return isFresh ? CHANGED : "go on";
  if (event.at - waiting.at > MAX_WAIT_MS) {
    await cancelWaiting(deps, record, signal);
    return "This waited for more than a day, so it is not done any more. Please ask once more.";
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
  if (isFresh) await showNote(deps, record, words, signal);
  await calls.decide(event.action === "deny" ? "denied" : "approved", words);
  return "go on";
}

function describeDecision({ action, author }: ActionEvent): string {
  const name = quoteName(author.name);
  if (action === "deny") return `_${name} did not allow that._`;
  return action === "always" ? `_${name} allowed that for this conversation._` : `_${name} allowed that once._`;
}

/** Ends the wait of calls for a person: they are not made. */
export async function cancelWaiting(deps: ToolApprovalDeps, record: TurnRecord, signal: AbortSignal): Promise<void> {
  await (await deps.ledger.open(record.id)).decide("denied", "");
  const { waits: _, ...over } = record;
  await deps.records.save({ ...over, canRetry: true });
  await showNote(deps, record, "_Stopped: what waited for a person was not done._", signal);
}
