import type { Keyv } from "keyv";
import type { Logger } from "pino";
import { z } from "zod";
import { createKeyedQueue } from "../concurrency/keyed-queue.ts";
import type { Attached } from "../gateway/attached.ts";
import type { AssistantMessage, ToolCall } from "../gateway/chunks.ts";
import { readKeyPart, toKeyPart, toOwnerKey } from "../store/key-part.ts";
import { walk } from "../store/values.ts";

/**
 * `planned`: the model asked for it. `approved`: it may run. `started`: written before the tool is called, so whatever
 * finds it so after a crash does not know whether it was done. `unknown`: neither does its caller.
 */
const state = z.enum(["planned", "approved", "started", "done", "failed", "unknown", "denied"]);

/** The next request of the turn returns these fields to the gateway, also if another process makes it. */
const attached: z.ZodType<Attached> = z.object({ from: z.string(), fields: z.record(z.string(), z.unknown()) });

const ledgerCall = z.object({
  id: z.string(),
  name: z.string(),
  /** JSON as the model wrote it. */
  arguments: z.string(),
  state,
  /** It may change something that a second call would change again. */
  acts: z.boolean(),
  /** A person has to allow it before it runs. */
  asks: z.boolean().exactOptional(),
  /** The result, as the model is told it. */
  result: z.string().exactOptional(),
  /** The press that let it run once more. */
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
  /** Tells people, not the model, who decided about the waiting calls, and how. */
  decision: z.string().exactOptional(),
  /** The question was another one when these were made. */
  isBeforeEdit: z.literal(true).exactOptional(),
});

export type LedgerCall = z.infer<typeof ledgerCall>;
export type LedgerRound = z.infer<typeof ledgerRound>;

/**
 * The calls of tools in one turn, round by round, as far as they have come. The next attempt goes on from here: what was
 * done is not done again, and what may have been done is not done again by itself.
 */
export interface TurnLedger {
  readonly rounds: readonly LedgerRound[];
  /** Writes down a round that the model asked for. Rejects when the store does not take it. */
  plan(round: LedgerRound): Promise<void>;
  /** Writes down how far a call of a round has come. Rejects when the store does not take it. */
  note(round: LedgerRound, call: LedgerCall, change: Partial<LedgerCall>): Promise<void>;
  /** Restarts the turn: rounds stay in which something was or may have been done. `isEdited`: by a new question. */
  restart(isEdited: boolean): Promise<void>;
  /** Calls of which nobody knows whether they were done. */
  uncertain(): LedgerCall[];
  /** The calls of a round that wait for a person; undefined when none does. */
  waiting(): WaitingCalls | undefined;
  /** A person has decided about the calls that wait. `words` say so where the answer goes on. */
  decide(decision: "approved" | "denied", words: string): Promise<void>;
  /** Lets the uncertain calls run once more; the same press lets them once. Resolves to how many do. */
  rerun(pressKey: string): Promise<number>;
}

export interface WaitingCalls {
  /** The time of the request, Unix milliseconds. */
  at: number;
  calls: LedgerCall[];
}

export interface Ledger {
  /** Reads the calls of a turn. Rejects when the store does not answer. */
  open(turnId: string): Promise<TurnLedger>;
  /** True when a person allowed every call of a tool in a conversation. */
  isAllowed(conversationId: string, toolName: string): Promise<boolean>;
  allow(conversationId: string, toolNames: readonly string[], by: Person): Promise<void>;
  /** Ends standing permissions: of one conversation or of all, given by one person or by everybody. */
  takeBack(where: { conversationId?: string; prefix?: string; by?: Person }): Promise<void>;
}

interface Person {
  platform: string;
  id: string;
}

/** Rounds of one turn at most; also those that an erasure looks for. */
export const MAX_ROUNDS = 8;

export interface LedgerOptions {
  /** The records of turns are kept there too, so that one fence and one erasure hold for both. */
  keyv: Keyv;
  /** Standing permissions that people gave. */
  allowed: Keyv;
  ttlMs: number;
}

export function toLedgerKeys(turnId: string): string[] {
  return Array.from({ length: MAX_ROUNDS }, (_, index) => toKey(turnId, index));
}

export function createLedger({ keyv, allowed, ttlMs }: LedgerOptions): Ledger {
  return {
    open: (turnId) => openTurn(keyv, ttlMs, turnId),
    isAllowed: async (conversationId, name) =>
      permission.safeParse(await allowed.get(toAllowedKey(conversationId, name))).success,
    async allow(conversationId, names, { platform, id }) {
      const value = { by: toOwnerKey(platform, id) };
      await allowed.setMany(names.map((name) => ({ key: toAllowedKey(conversationId, name), value, ttl: ttlMs })));
    },
    async takeBack({ conversationId, prefix = "", by }) {
      const owner = by && toOwnerKey(by.platform, by.id);
      const keys: string[] = [];
      for await (const [key, value] of walk(allowed)) {
        const [of = ""] = key.split(":");
        const isThere =
          conversationId === undefined
            ? (readKeyPart(of)?.startsWith(prefix) ?? true)
            : of === toKeyPart(conversationId);
        const found = permission.safeParse(value).data;
        if (isThere && (owner === undefined || (typeof found === "object" && found.by === owner))) keys.push(key);
      }
      if (keys.length > 0) await allowed.deleteMany(keys);
    },
  };
}

/** The person who allowed it, as `toOwnerKey` names people; 1: unknown. */
const permission = z.union([z.object({ by: z.string() }), z.literal(1)]);

async function openTurn(keyv: Keyv, ttlMs: number, turnId: string): Promise<TurnLedger> {
  const stored: unknown[] = await keyv.getMany(toLedgerKeys(turnId));
  const readable = stored.map((value) => ledgerRound.safeParse(value).data);
  const end = readable.indexOf(undefined);
  const rounds = readable.slice(0, end === -1 ? undefined : end).filter((round) => round !== undefined);
  const inTurn = createKeyedQueue().run;

  /** One write of a round at a time, each with all that is known by then: calls of a round run side by side. */
  function write(round: LedgerRound): Promise<void> {
    const index = rounds.indexOf(round);
    // One that could not be written down when it was planned has nothing that must be.
    if (index === -1) return Promise.resolve();
    return inTurn(String(index), async () => void (await keyv.set(toKey(turnId, index), round, ttlMs)));
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
      Object.assign(call, change);
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

/** Stands in when the ledger cannot be read: calls that must be written down are not made. */
export const NO_LEDGER: TurnLedger = {
  rounds: [],
  plan: () => Promise.reject(new Error("The calls of this turn could not be read.")),
  note: async () => {},
  restart: async () => {},
  uncertain: () => [],
  waiting: () => undefined,
  decide: async () => {},
  rerun: async () => 0,
};

const CANCELLED = { state: "denied", result: "Not run: the answer was begun anew before anybody allowed it." } as const;

/** The text of a round, which people have seen and which does not go again: also who allowed what. */
export function toShown({ content, decision }: LedgerRound): string {
  return [content, decision].filter(Boolean).join("\n\n");
}

export function toAnswer({ content, calls, attached }: LedgerRound): AssistantMessage {
  return { role: "assistant", content, tool_calls: calls.map(toToolCall), ...(attached && { attached }) };
}

export function toToolCall({ id, name, arguments: json, attached }: LedgerCall): ToolCall {
  return { id, type: "function", function: { name, arguments: json }, ...(attached && { attached }) };
}

/** The ledger of a turn that writes down, with the round that an answer begins, what the gateway attached to it. */
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

/** It may have been done, and nobody knows. */
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

/** A turn whose calls cannot be read goes on, and does nothing that must be written down. */
export async function openLedger(
  { ledger, log }: { ledger: Ledger; log: Logger },
  turnId: string,
): Promise<TurnLedger> {
  try {
    return await ledger.open(turnId);
  } catch (err) {
    log.error({ err, turnId }, "the calls of a turn could not be read");
    return NO_LEDGER;
  }
}
