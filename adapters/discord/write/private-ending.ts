import { setTimeout as sleep } from "node:timers/promises";
import { type APIMessage, MessageFlags, Routes } from "discord.js";
import { truncate } from "../../../src/text/truncate.ts";
import type { Api } from "../api/client.ts";
import { ApiError, isUncertain } from "../api/error.ts";
import { type MessageBody, readCustomId, readCustomIds } from "./draft.ts";
import { type InteractionAddress, isWaiting, MARGIN_MS, ORIGINAL } from "./interaction-token.ts";
import { MAX_LENGTH } from "./markdown.ts";

const WORDS =
  "_Interrupted: Discord lets me write a private answer for only fifteen minutes after you ask. Please ask again. A public answer can take longer._";
const SEPARATOR = "\n\n";
const AGAIN_MS = 1_000;
/** The longest delay that a timer accepts. */
const MAX_DELAY_MS = 2 ** 31 - 1;

type TokenAddress = Pick<InteractionAddress, "token" | "applicationId" | "expiresAt">;

/**
 * Ends a growing private answer shortly before its token expires, because afterwards no one can write to it and its
 * Stop button would stay forever. Every process that promised the answer or wrote to it tries this, but reads the
 * answer first, because another process may have finished it.
 */
export interface FinalMessages {
  /** Call this when a message of the answer shows this body. */
  note(to: TokenAddress, messageId: string, body: MessageBody): void;
  /** Call this when the bot has promised the answer but has not written to it yet. */
  promise(to: TokenAddress): void;
  /** Call this when the message is gone, or when the promised answer has arrived. */
  settle(to: TokenAddress, messageId: string): void;
  /** Runs a write to the answer. Meanwhile the answer is not ended, because the write can be its last one. */
  whileWriting<T>(to: TokenAddress, write: () => Promise<T>): Promise<T>;
}

interface GrowingAnswer {
  messages: Set<string>;
  timer: NodeJS.Timeout;
}

export function createFinalMessages(api: Api, now: () => number, closing: AbortSignal): FinalMessages {
  const answers = new Map<string, GrowingAnswer>();
  const underWay = new Set<{ token: string; over: Promise<void> }>();

  function grow(to: TokenAddress, messageId: string): void {
    const answer = answers.get(to.token) ?? begin(to);
    answer.messages.add(messageId);
  }

  function begin(to: TokenAddress): GrowingAnswer {
    const delayMs = Math.min(Math.max(0, to.expiresAt - MARGIN_MS - now()), MAX_DELAY_MS);
    const timer = setTimeout(() => void interrupt(to), delayMs).unref();
    const answer = { messages: new Set<string>(), timer };
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
    const { messages = new Set<string>() } = answers.get(to.token) ?? {};
    answers.delete(to.token);
    for (const messageId of messages) await write(to, messageId);
  }

  async function write({ token, applicationId, expiresAt }: TokenAddress, messageId: string): Promise<void> {
    const route = Routes.webhookMessage(applicationId, token, messageId);
    const bound = AbortSignal.any([closing, AbortSignal.timeout(Math.max(1, expiresAt - now()))]);
    while (!bound.aborted) {
      try {
        const shown = (await api.call({ method: "GET", route, isBot: false }, bound)).data as APIMessage;
        if (!isWaiting(shown) && !canBeStopped(shown.components)) return;
        await api.call({ method: "PATCH", route, body: toLastBody(shown.content), isBot: false }, bound);
        return;
      } catch (error) {
        const waitMs = isUncertain(error) ? AGAIN_MS : error instanceof ApiError ? error.retryAfterMs : undefined;
        // The message is gone, so nothing is left to write.
        if (waitMs === undefined) return;
        await sleep(waitMs, undefined, { signal: bound, ref: false }).catch(() => {});
      }
    }
  }

  return {
    note(to, messageId, body) {
      if (canBeStopped(body.components)) grow(to, messageId);
      else end(to, messageId);
    },
    promise: (to) => grow(to, ORIGINAL),
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

function canBeStopped(components: Parameters<typeof readCustomIds>[0]): boolean {
  return readCustomIds(components).some((id) => readCustomId(id)?.action === "stop");
}

function toLastBody(shown: string): MessageBody {
  const room = MAX_LENGTH - WORDS.length - SEPARATOR.length;
  const text = truncate(shown, room, "");
  const content = text.trim() === "" ? WORDS : text + SEPARATOR + WORDS;
  const flags = MessageFlags.SuppressEmbeds as const;
  return { content, allowed_mentions: { parse: [], replied_user: false }, flags, components: [] };
}
