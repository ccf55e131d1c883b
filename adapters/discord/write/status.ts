import { Routes } from "discord.js";
import type { Api } from "../api/client.ts";
import { ApiError } from "../api/error.ts";
import type { OptionalCalls } from "../api/optional-calls.ts";
import type { Rooms } from "../api/rooms.ts";
import type { MessagePlace } from "../ids.ts";

/** Discord removes the typing indicator after ten seconds. */
const REPEAT_MS = 8_000;
/** The shortest time between two typing calls in one channel, over all answers, because typing has a rate limit too. */
const LEAST_MS = 2_000;
/** The typing indicator ends if the model is silent for longer than this. */
const LONGEST_MS = 5 * 60_000;
const CALL_MS = 5_000;
const MAX_CHANNELS = 1_000;

/** The typing indicator of one answer. Ignores failures. */
export interface Typing {
  start(): void;
  stop(): void;
}

interface Indicator {
  writers: Set<Typing>;
  /** The indicator is not shown again before this time of `performance.now`. */
  readyAt: number;
  timer: NodeJS.Timeout | undefined;
}

/** One call per channel is enough for all answers in it. */
export function createTypings(api: Api): (channelId: string) => Typing {
  const indicators = new Map<string, Indicator>();

  function indicatorOf(channelId: string): Indicator {
    const indicator = indicators.get(channelId) ?? { writers: new Set(), readyAt: 0, timer: undefined };
    indicators.set(channelId, indicator);
    if (indicators.size > MAX_CHANNELS)
      for (const [id, { writers }] of indicators) if (writers.size === 0) indicators.delete(id);
    return indicator;
  }

  function schedule(channelId: string, indicator: Indicator, delayMs: number): void {
    clearTimeout(indicator.timer);
    indicator.timer = setTimeout(() => show(channelId, indicator), delayMs).unref();
  }

  function show(channelId: string, indicator: Indicator): void {
    indicator.readyAt = performance.now() + LEAST_MS;
    schedule(channelId, indicator, REPEAT_MS);
    api
      .call({ method: "POST", route: Routes.channelTyping(channelId) }, AbortSignal.timeout(CALL_MS))
      // Drops the error, because the answers will meet the same problem and report it.
      .catch((error: unknown) => {
        const waitMs = (error instanceof ApiError ? error.retryAfterMs : undefined) ?? 0;
        indicator.readyAt = Math.max(indicator.readyAt, performance.now() + waitMs);
        for (const writer of indicator.writers) writer.stop();
      });
  }

  return (channelId) => {
    let end: NodeJS.Timeout | undefined;
    const typing: Typing = {
      start() {
        const indicator = indicatorOf(channelId);
        if (indicator.writers.has(typing)) return;
        indicator.writers.add(typing);
        end = setTimeout(typing.stop, LONGEST_MS).unref();
        if (indicator.writers.size > 1) return;
        const waitMs = indicator.readyAt - performance.now();
        if (waitMs > 0) schedule(channelId, indicator, waitMs);
        else show(channelId, indicator);
      },
      stop() {
        clearTimeout(end);
        const indicator = indicators.get(channelId);
        if (indicator?.writers.delete(typing) === true && indicator.writers.size === 0) clearTimeout(indicator.timer);
      },
    };
    return typing;
  };
}

const WAITING = encodeURIComponent("⏳");

export interface MarkWaitingDeps {
  rooms: Pick<Rooms, "mayReact">;
  /** One key per channel, because Discord accepts only one reaction every quarter of a second. */
  reactions: OptionalCalls;
}

export function createMarkWaiting({ rooms, reactions }: MarkWaitingDeps) {
  return async ({ channelId, messageId }: MessagePlace, isWaiting: boolean, signal: AbortSignal): Promise<boolean> => {
    // Skips a refused mark, because each refused call counts against the bot.
    if (!rooms.mayReact(channelId)) return true;
    const route = Routes.channelMessageOwnReaction(channelId, messageId, WAITING);
    return (await reactions.call(channelId, { method: isWaiting ? "PUT" : "DELETE", route }, signal)) !== undefined;
  };
}
