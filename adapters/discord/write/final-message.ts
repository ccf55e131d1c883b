import { setTimeout as sleep } from "node:timers/promises";
import { MessageFlags, Routes } from "discord.js";
import type { Api } from "../api/client.ts";
import { ApiError, isUncertain } from "../api/error.ts";
import { type InteractionAddress, MARGIN_MS, ORIGINAL } from "./interaction-token.ts";
import { MAX_LENGTH, type MessageBody, readCustomId, readCustomIds } from "./message-body.ts";

const WORDS =
  "_Interrupted: Discord lets me write to you alone for fifteen minutes after you ask, and those are over. Please ask again; an answer that everybody sees may take longer._";
const SEPARATOR = "\n\n";
/** Before a call that went wrong is made again; the token lives only for so long. */
const AGAIN_MS = 1_000;
/** Most a timer can count. */
const MAX_DELAY_MS = 2 ** 31 - 1;

type TokenAddress = Pick<InteractionAddress, "token" | "applicationId" | "expiresAt">;

/**
 * Ends in words what only one person sees and what still grows when its token ends: nobody can write there afterwards,
 * and its Stop button would stand for ever. Best effort, by the process that wrote it last.
 */
export interface FinalMessages {
  /** A message of the answer shows this. */
  note(to: TokenAddress, messageId: string, body: MessageBody): void;
  /** The answer was promised and has no message yet. */
  promise(to: TokenAddress): void;
  /** The message is gone, or what was promised in its place has come. */
  settle(to: TokenAddress, messageId: string): void;
  /** Writes to the answer: what may be its end is not written over while it is on its way. */
  whileWriting<T>(to: TokenAddress, write: () => Promise<T>): Promise<T>;
}

/** One answer that is not over: its messages that grow, with what they show. */
interface Growing {
  messages: Map<string, string>;
  timer: NodeJS.Timeout;
}

export function createFinalMessages(api: Api, now: () => number, closing: AbortSignal): FinalMessages {
  const answers = new Map<string, Growing>();
  const underWay = new Set<{ token: string; over: Promise<void> }>();

  function grow(to: TokenAddress, messageId: string, content: string): void {
    const answer = answers.get(to.token) ?? begin(to);
    answer.messages.set(messageId, content);
  }

  function begin(to: TokenAddress): Growing {
    const delayMs = Math.min(Math.max(0, to.expiresAt - MARGIN_MS - now()), MAX_DELAY_MS);
    const timer = setTimeout(() => void interrupt(to), delayMs).unref();
    const answer = { messages: new Map<string, string>(), timer };
    answers.set(to.token, answer);
    return answer;
  }

  function end({ token }: TokenAddress, messageId: string): void {
    const answer = answers.get(token);
    answer?.messages.delete(messageId);
    if (answer?.messages.size !== 0) return;
    clearTimeout(answer.timer);
    answers.delete(token);
  }

  async function interrupt(to: TokenAddress): Promise<void> {
    const calls = [...underWay].filter(({ token }) => token === to.token);
    await Promise.all(calls.map(({ over }) => over));
    const { messages = new Map<string, string>() } = answers.get(to.token) ?? {};
    answers.delete(to.token);
    for (const [messageId, content] of messages) await write(to, messageId, content);
  }

  async function write(
    { token, applicationId, expiresAt }: TokenAddress,
    messageId: string,
    content: string,
  ): Promise<void> {
    const route = Routes.webhookMessage(applicationId, token, messageId);
    const body = toLastBody(content);
    const bound = AbortSignal.any([closing, AbortSignal.timeout(Math.max(1, expiresAt - now()))]);
    while (!bound.aborted) {
      try {
        await api.call({ method: "PATCH", route, body, isBot: false }, bound);
        return;
      } catch (error) {
        const waitMs = isUncertain(error) ? AGAIN_MS : error instanceof ApiError ? error.retryAfterMs : undefined;
        // Gone, or taken back: then nothing is left to be said.
        if (waitMs === undefined) return;
        await sleep(waitMs, undefined, { signal: bound, ref: false }).catch(() => {});
      }
    }
  }

  return {
    note(to, messageId, body) {
      const buttons = readCustomIds(body.components).map((id) => readCustomId(id)?.action);
      if (buttons.includes("stop")) grow(to, messageId, body.content);
      else end(to, messageId);
    },
    promise: (to) => grow(to, ORIGINAL, ""),
    settle: end,
    async whileWriting({ token }, write) {
      const over = Promise.withResolvers<void>();
      const call = { token, over: over.promise };
      underWay.add(call);
      try {
        return await write();
      } finally {
        underWay.delete(call);
        over.resolve();
      }
    },
  };
}

function toLastBody(shown: string): MessageBody {
  const room = MAX_LENGTH - WORDS.length - SEPARATOR.length;
  // A letter of two units is not cut in half.
  const text = shown.slice(0, room).replace(/[\uD800-\uDBFF]$/, "");
  const content = text.trim() === "" ? WORDS : text + SEPARATOR + WORDS;
  const flags = MessageFlags.SuppressEmbeds as const;
  return { content, allowed_mentions: { parse: [], replied_user: false }, flags, components: [] };
}
