import { Routes } from "discord.js";
import type { Api } from "../api/client.ts";
import { ApiError } from "../api/error.ts";

/** Discord takes the sign away after ten seconds. */
const REPEAT_MS = 8_000;
/** Least time between two calls in one channel, for all answers in it together: typing has a rate limit too. */
const LEAST_MS = 2_000;
/** A model that is silent for longer than this is not typing. */
const LONGEST_MS = 5 * 60_000;
const CALL_MS = 5_000;
const MAX_CHANNELS = 1_000;

/** The sign that the bot is writing, for one answer. Best effort: nobody misses it. */
export interface Typing {
  start(): void;
  stop(): void;
}

/** The sign of a channel, shared by the answers that are about to be written there. */
interface Sign {
  writers: Set<Typing>;
  /** Not shown again before this; as `performance.now` counts. */
  readyAt: number;
  timer: NodeJS.Timeout | undefined;
}

/** The signs of all channels: one call per channel shows that the bot is writing, for all answers in it. */
export function createTypings(api: Api): (channelId: string) => Typing {
  const signs = new Map<string, Sign>();

  function signOf(channelId: string): Sign {
    const sign = signs.get(channelId) ?? { writers: new Set(), readyAt: 0, timer: undefined };
    signs.set(channelId, sign);
    if (signs.size > MAX_CHANNELS) for (const [id, { writers }] of signs) if (writers.size === 0) signs.delete(id);
    return sign;
  }

  function schedule(channelId: string, sign: Sign, delayMs: number): void {
    clearTimeout(sign.timer);
    sign.timer = setTimeout(() => show(channelId, sign), delayMs).unref();
  }

  function show(channelId: string, sign: Sign): void {
    sign.readyAt = performance.now() + LEAST_MS;
    schedule(channelId, sign, REPEAT_MS);
    api
      .call({ method: "POST", route: Routes.channelTyping(channelId) }, AbortSignal.timeout(CALL_MS))
      // The answers themselves will meet the same problem and report it.
      .catch((error: unknown) => {
        const waitMs = (error instanceof ApiError ? error.retryAfterMs : undefined) ?? 0;
        sign.readyAt = Math.max(sign.readyAt, performance.now() + waitMs);
        for (const writer of sign.writers) writer.stop();
      });
  }

  return (channelId) => {
    let end: NodeJS.Timeout | undefined;
    const typing: Typing = {
      start() {
        const sign = signOf(channelId);
        if (sign.writers.has(typing)) return;
        sign.writers.add(typing);
        end = setTimeout(typing.stop, LONGEST_MS).unref();
        if (sign.writers.size > 1) return;
        const waitMs = sign.readyAt - performance.now();
        if (waitMs > 0) schedule(channelId, sign, waitMs);
        else show(channelId, sign);
      },
      stop() {
        clearTimeout(end);
        const sign = signs.get(channelId);
        if (sign?.writers.delete(typing) === true && sign.writers.size === 0) clearTimeout(sign.timer);
      },
    };
    return typing;
  };
}
