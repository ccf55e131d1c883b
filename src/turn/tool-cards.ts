import { toCallsId } from "../port/ids.ts";
import type { Button } from "../port/sink.ts";
import { quoteName } from "../text/quote-name.ts";
import type { LedgerCall } from "../tools/ledger.ts";
import type { Tool } from "../tools/tool.ts";

/** Characters that would be invisible, or would reverse the text. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\u{E0100}-\u{E01EF}\uFE00-\uFE0F\u115F\u1160\u3164\uFFA0]/gu;

/** Shows people the calls that they are to allow, each with its server and all that it is given, as Markdown. */
export function describeWaiting(calls: readonly LedgerCall[], tools: readonly Tool[]): string {
  const cards = calls.map((call) => {
    const server = tools.find(({ name }) => name === call.name)?.approval?.server;
    const of = server === undefined ? "" : ` of the server ${quoteName(server)}`;
    const shown = showArguments(call.arguments);
    const fence = "`".repeat(Math.max(3, ...Array.from(shown.matchAll(/`+/g), ([run]) => run.length + 1)));
    return `**May I use ${quoteName(call.name)}**${of}?\n\n${fence}json\n${shown}\n${fence}`;
  });
  return cards.join("\n\n");
}

export function toWaitingButtons(turnId: string, round: number): Button[] {
  const id = toCallsId(turnId, round);
  return [
    { action: "approve", turnId: id, label: "Approve once" },
    { action: "always", turnId: id, label: "Always in this conversation" },
    { action: "deny", turnId: id, label: "Deny" },
  ];
}

/** Makes calls once more that may have been done. */
export function toRerunButton(turnId: string): Button {
  return { action: "rerun", turnId, label: "Run it again" };
}

/** Tells people of calls that may have been done; "" for none. */
export function describeUncertain(calls: readonly LedgerCall[]): string {
  if (calls.length === 0) return "";
  const names = [...new Set(calls.map(({ name }) => quoteName(name)))].join(", ");
  return `_It is not known whether ${names} was done: the call was begun, and no result came. I do not make it again by myself. Look first; then press Run it again if it is needed._`;
}

/** JSON over several lines, with everything that could not be seen written out. */
function showArguments(json: string): string {
  return toLines(json).replace(UNSEEN, (char) => (char === "\n" ? char : toEscapes(char)));
}

function toLines(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json === "" ? "{}" : json), undefined, 2);
  } catch {
    return json;
  }
}

function toEscapes(char: string): string {
  return Array.from({ length: char.length }, (_, index) => {
    return `\\u${char.charCodeAt(index).toString(16).padStart(4, "0")}`;
  }).join("");
}
