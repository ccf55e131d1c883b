import { Routes } from "discord.js";
import type { Api } from "../api/client.ts";
import { ApiError } from "../api/error.ts";

/** Discord takes the indicator away after ten seconds. */
const REPEAT_MS = 8_000;
/** Least time between two calls in one channel, for all answers in it together: typing has a rate limit too. */
const LEAST_MS = 2_000;
/** A model that is silent for longer than this is not typing. */
const LONGEST_MS = 5 * 60_000;
const CALL_MS = 5_000;
const MAX_CHANNELS = 1_000;

/** The indicator that the bot is writing, for one answer. Best effort: nobody misses it. */
export interface Typing {
  start(): void;
  stop(): void;
}

/** The indicator of a channel, shared by the answers that are about to be written there. */
interface Indicator {
  writers: Set<Typing>;
  /** Not shown again before this; as `performance.now` counts. */
  readyAt: number;
  timer: NodeJS.Timeout | undefined;
}

/** The indicators of all channels: one call per channel shows that the bot is writing, for all answers in it. */
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
      // The answers themselves will meet the same problem and report it.
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
