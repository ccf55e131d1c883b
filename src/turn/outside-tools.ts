import { untilAborted, waitAtMost } from "../concurrency/deadlines.ts";
import { type ChatMessage, textOf } from "../gateway/chunks.ts";
import type { History } from "../history/history.ts";
import { readPromptCall } from "../mcp/prompts.ts";
import type { MessageEvent, ReplyAddress } from "../port/events.ts";
import { chooseTools } from "../tools/choice.ts";
import { NO_LEDGER, type TurnLedger, toToolCall } from "../tools/ledger.ts";
import type { Tool } from "../tools/tool.ts";
import type { Context } from "./context.ts";
import type { Permits } from "./permits.ts";
import type { TurnRecord } from "./record.ts";

/** With too many tools for one request, the newest messages of people decide which are offered. */
const MESSAGES_TO_CHOOSE_BY = 2;
/** Longest that a resumed turn waits for servers that are still being started. */
const START_MS = 10_000;

export interface OutsideTools {
  /** Resolves when each server of a place, without those that are `off`, is ready or was not reached once. */
  tried(place: ReplyAddress, off: readonly string[]): Promise<void>;
  /** The tools that are offered in a place, without those of servers that are `off` there. */
  toolsOf(place: ReplyAddress, off: readonly string[]): readonly Tool[];
  /** The prompt named by a message; a sentence if it is not to be had; undefined for any other message. */
  readPrompt(
    place: ReplyAddress,
    message: string,
    off: readonly string[],
    signal: AbortSignal,
  ): Promise<ChatMessage[] | string | undefined>;
}

interface Turn {
  outside: OutsideTools;
  record: TurnRecord;
  /** Servers of tools that the channel has switched off. */
  serversOff: readonly string[];
  /** The permissions of the person who asks. */
  permits: Permits;
}

interface Offering extends Turn {
  tools: readonly Tool[];
  ledger: TurnLedger;
  context: Context;
}

/** The tools of one request. What must be written down is not offered where that cannot be done. */
export function toOffered({
  outside,
  record,
  serversOff,
  permits,
  tools,
  ledger,
  context: { messages },
}: Offering): readonly Tool[] {
  const own = permits.chooseTools(tools);
  const offered = permits.chooseTools(outside.toolsOf(record.reply, serversOff));
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

interface Asking extends Turn {
  /** The turn's messages, where they are at hand. */
  messages: readonly MessageEvent[];
  history: Pick<History, "read">;
  signal: AbortSignal;
}

/**
 * Resolves to the messages of the prompt that a question names, or to none if it names no prompt. Resolves to a sentence
 * if the prompt cannot be had. A turn that resumes waits for its servers first: what it called must be there again.
 */
export async function readPrompt(asking: Asking): Promise<ChatMessage[] | string> {
  const { outside, record, messages, serversOff, permits, history, signal } = asking;
  if (record.attempts > 1 || record.posted.length > 0) {
    await untilAborted(waitAtMost(outside.tried(record.reply, serversOff), START_MS), signal);
  }
  const asked = messages.at(-1)?.text ?? (await readQuestion(history, record));
  const call = readPromptCall(asked);
  const refusal = call && permits.findRefusal(`tool:${call.server}__${call.name}`);
  if (refusal !== undefined) return refusal;
  return (await outside.readPrompt(record.reply, asked, serversOff, signal)) ?? [];
}

async function readQuestion(history: Asking["history"], { conversationId, messageIds }: TurnRecord): Promise<string> {
  const upToId = messageIds.at(-1);
  if (upToId === undefined) return "";
  const { entries } = await history.read(conversationId, { maxEntries: 1, upToId });
  return entries.flatMap((entry) => entry.messages.map(textOf)).at(-1) ?? "";
}
