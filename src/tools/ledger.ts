import type { Logger } from "pino";
import { z } from "zod";
import { createKeyedQueue } from "../concurrency/keyed-queue.ts";
import type { Attached } from "../gateway/attached.ts";
import type { AssistantMessage, ToolCall } from "../gateway/chunks.ts";
import { source } from "../port/source.ts";
import { toKeyPart } from "../store/key-part.ts";
import type { Entries } from "../store/keyv.ts";
import type { Owner } from "../store/owned.ts";
import { foundPlaces } from "./tool.ts";

/**
 * `planned`: the model asked for the call. `approved`: the call can run. `started`: the call may have run, because this
 * state is stored before the call. `unknown`: even the process that made the call does not know whether the tool ran.
 */
const state = z.enum(["planned", "approved", "started", "done", "failed", "unknown", "denied"]);

/** Fields that the turn's next request sends back to the gateway, even from another process. */
const attached: z.ZodType<Attached> = z.object({ from: z.string(), fields: z.record(z.string(), z.unknown()) });

const ledgerCall = z.object({
  id: z.string(),
  name: z.string(),
  /** JSON as the model wrote it. */
  arguments: z.string(),
  state,
  /** True if the call can change something, so a repeated call could change it again. */
  acts: z.boolean(),
  /** True if a user must permit the call before it runs. */
  asks: z.boolean().exactOptional(),
  /** The result for the model. */
  result: z.string().exactOptional(),
  /** The pages that the result comes from. */
  sources: z.array(source).exactOptional(),
  found: foundPlaces.exactOptional(),
  /** How often the turn had ended before the call started. */
  ends: z.number().exactOptional(),
  /** Key of the button press with which a user permitted another run. */
  rerunBy: z.string().exactOptional(),
  attached: attached.exactOptional(),
});

const ledgerRound = z.object({
  v: z.literal(1),
  /** The model's text before the calls. */
  content: z.string(),
  calls: z.array(ledgerCall),
  attached: attached.exactOptional(),
  /** Unix milliseconds. */
  at: z.number(),
  /** Tells users who decided about the waiting calls, and how. The model does not get this sentence. */
  decision: z.string().exactOptional(),
  /** True if the calls were made before the question was edited. */
  isBeforeEdit: z.literal(true).exactOptional(),
});

export type LedgerCall = z.infer<typeof ledgerCall>;
export type LedgerRound = z.infer<typeof ledgerRound>;

/**
 * The tool calls of one turn, by round, with their progress. The next attempt at the turn continues from here. It skips
 * calls that are done, and repeats a call that may already be done only if a user asks for it.
 */
export interface TurnLedger {
  readonly rounds: readonly LedgerRound[];
  /** Stores a new round of calls. Rejects if the store fails. */
  plan(round: LedgerRound): Promise<void>;
  /** Stores a call's progress. Rejects if the store fails. */
  note(round: LedgerRound, call: LedgerCall, change: Partial<LedgerCall>): Promise<void>;
  /**
   * Restarts the turn, but keeps rounds in which a call acted or may have acted. `isEdited` is true if the question was
   * edited.
   */
  restart(isEdited: boolean): Promise<void>;
  uncertain(): LedgerCall[];
  /** Returns the calls that wait for a user's decision; undefined if none waits. */
  waiting(): WaitingCalls | undefined;
  /** Stores a user's decision about the waiting calls. The answer shows `words`. */
  decide(decision: "approved" | "denied", words: string): Promise<void>;
  /** Lets uncertain calls run again, once per button press. Resolves to their number. */
  rerun(pressKey: string): Promise<number>;
}

export interface WaitingCalls {
  /** When the calls were requested, in Unix milliseconds. */
  at: number;
  calls: LedgerCall[];
}

/** A turn, with the fields that an erasure of its calls needs. */
export interface LedgerTurn {
  id: string;
  /** The outcome of each time that the turn ended. */
  ends?: readonly string[];
  author: { id: string };
  reply: { platform: string };
  conversationId: string;
}

export interface Ledger {
  /** Reads a turn's calls. Rejects if the store fails. */
  open(turn: LedgerTurn): Promise<TurnLedger>;
  /** Resolves to true if a user has permitted all calls of a tool in a conversation. */
  isAllowed(conversationId: string, toolName: string): Promise<boolean>;
  /** Permits all calls of these tools, until the user's data or the conversation is erased. */
  allow(conversationId: string, toolNames: readonly string[], by: Owner): Promise<void>;
}

/** Maximum number of rounds per turn. An erasure deletes the keys of all these rounds. */
export const MAX_ROUNDS = 8;

export interface LedgerOptions {
  /** Stores rounds and turn records, so that one fence and one erasure cover both. */
  keyv: Entries;
  /** Permissions for all calls of a tool. */
  allowed: Entries;
  ttlMs: number;
}

export function toLedgerKeys(turnId: string): string[] {
  return Array.from({ length: MAX_ROUNDS }, (_, index) => toKey(turnId, index));
}

export function createLedger({ keyv, allowed, ttlMs }: LedgerOptions): Ledger {
  return {
    open: (turn) => openTurn(keyv, ttlMs, turn),
    isAllowed: (conversationId, name) => allowed.has(toAllowedKey(conversationId, name)),
    async allow(conversation, names, owner) {
      const common = { value: true, ttlMs, owner, conversation };
      await allowed.write(names.map((name) => ({ key: toAllowedKey(conversation, name), ...common })));
    },
  };
}

async function openTurn(keyv: Entries, ttlMs: number, turn: LedgerTurn): Promise<TurnLedger> {
  const { id: turnId, conversationId, ends = [] } = turn;
  const owner = { platform: turn.reply.platform, id: turn.author.id };
  const stored: unknown[] = await keyv.getMany(toLedgerKeys(turnId));
  const readable = stored.map((value) => ledgerRound.safeParse(value).data);
  const end = readable.indexOf(undefined);
  const rounds = readable.slice(0, end === -1 ? undefined : end).filter((round) => round !== undefined);
  const inTurn = createKeyedQueue().run;

  /** Stores a round completely. Makes one write at a time, because the calls of a round run in parallel. */
  function write(round: LedgerRound): Promise<void> {
    const index = rounds.indexOf(round);
    // The plan of this round was not stored, so its calls must not be stored either.
    if (index === -1) return Promise.resolve();
    const entry = { key: toKey(turnId, index), value: round, ttlMs, owner, conversation: conversationId };
    return inTurn(String(index), async () => void (await keyv.put(entry)));
  }

  function uncertain(): LedgerCall[] {
    return rounds.flatMap(({ calls }) => calls.filter(isUncertain));
  }

  return {
    rounds,
    async plan(round) {
      rounds.push(round);
      try {
        await write(round);
      } catch (error) {
        rounds.pop();
        throw error;
      }
    },
    async note(round, call, change) {
      Object.assign(call, change, change.state === "started" && { ends: ends.length });
      await write(round);
    },
    async restart(isEdited) {
      const count = rounds.findLastIndex(({ calls }) => calls.some(hasActed)) + 1;
      const dropped = rounds.splice(count);
      for (const round of rounds) {
        if (isEdited) round.isBeforeEdit = true;
        for (const call of round.calls) if (isOpen(call)) Object.assign(call, CANCELLED);
        await write(round);
      }
      const keys = dropped.map((_, index) => toKey(turnId, count + index));
      if (keys.length > 0) await keyv.deleteMany(keys);
    },
    uncertain,
    waiting() {
      const round = rounds.find(({ calls }) => calls.some(waits));
      return round && { at: round.at, calls: round.calls.filter(waits) };
    },
    async decide(decision, words) {
      const round = rounds.find(({ calls }) => calls.some(waits));
      if (round === undefined) return;
      for (const call of round.calls.filter(waits)) call.state = decision;
      round.decision = words;
      await write(round);
    },
    async rerun(pressKey) {
      const calls = uncertain().filter(({ rerunBy }) => rerunBy !== pressKey);
      for (const call of calls) Object.assign(call, { state: "approved", rerunBy: pressKey });
      for (const round of rounds) if (round.calls.some((call) => calls.includes(call))) await write(round);
      return calls.length;
    },
  };
}

/** Replaces a ledger that cannot be read. Calls that must be recorded then do not run. */
export const NO_LEDGER: TurnLedger = {
  rounds: [],
  plan: () => Promise.reject(new Error("Could not read the tool calls of this turn.")),
  note: async () => {},
  restart: async () => {},
  uncertain: () => [],
  waiting: () => undefined,
  decide: async () => {},
  rerun: async () => 0,
};

const CANCELLED = {
  state: "denied",
  result: "Not run: the answer was restarted before anyone allowed the call.",
} as const;

/** Returns what users have seen of a round: its text, and the decision about its calls. */
export function toShown({ content, decision }: LedgerRound): string {
  return [content, decision].filter(Boolean).join("\n\n");
}

export function toAnswer({ content, calls, attached }: LedgerRound): AssistantMessage {
  return { role: "assistant", content, tool_calls: calls.map(toToolCall), ...(attached && { attached }) };
}

export function toToolCall({ id, name, arguments: json, attached }: LedgerCall): ToolCall {
  return { id, type: "function", function: { name, arguments: json }, ...(attached && { attached }) };
}

/**
 * Wraps a ledger. It stores each round together with the gateway's extra fields from the answer that started the round.
 */
export function withAttached(
  ledger: TurnLedger,
  { attached, tool_calls: answered = [] }: AssistantMessage,
): TurnLedger {
  return {
    ...ledger,
    plan(round) {
      if (attached !== undefined) round.attached = attached;
      for (const [index, call] of round.calls.entries()) {
        const own = answered[index]?.attached;
        if (own !== undefined) call.attached = own;
      }
      return ledger.plan(round);
    },
  };
}

export function isUncertain({ state, acts }: LedgerCall): boolean {
  return acts && (state === "started" || state === "unknown");
}

function hasActed({ state, acts }: LedgerCall): boolean {
  return acts && ["started", "done", "failed", "unknown"].includes(state);
}

function isOpen({ state }: LedgerCall): boolean {
  return state === "planned" || state === "approved";
}

function waits({ state, asks }: LedgerCall): boolean {
  return state === "planned" && asks === true;
}

function toKey(turnId: string, index: number): string {
  return `calls:${toKeyPart(turnId)}:${index}`;
}

function toAllowedKey(conversationId: string, toolName: string): string {
  return `${toKeyPart(conversationId)}:${toKeyPart(toolName)}`;
}

/** Reads a turn's calls. If that fails, the turn continues, but calls that must be recorded do not run. */
export async function openLedger(
  { ledger, log }: { ledger: Ledger; log: Logger },
  turn: LedgerTurn,
): Promise<TurnLedger> {
  try {
    return await ledger.open(turn);
  } catch (err) {
    log.error({ err, turnId: turn.id }, "could not read the tool calls of a turn");
    return NO_LEDGER;
  }
}
