import { Routes } from "discord.js";
import type { Api } from "./api.ts";

/** Discord takes the sign away after ten seconds. */
const REPEAT_MS = 8_000;
/** A model that is silent for longer than this is not typing. */
const LONGEST_MS = 5 * 60_000;
const CALL_MS = 5_000;

/** The sign that the bot is writing. Best effort: nobody misses it. */
export interface Typing {
  start(): void;
  stop(): void;
}

export function createTyping(api: Api, channelId: string): Typing {
  let timer: NodeJS.Timeout | undefined;
  let left = 0;

  function show(): void {
    api
      .call({ method: "POST", route: Routes.channelTyping(channelId) }, AbortSignal.timeout(CALL_MS))
      // Whatever is wrong, the answer itself will meet it and say so.
      .catch(() => stop());
  }

  function stop(): void {
    clearInterval(timer);
    timer = undefined;
  }

  return {
    start() {
      if (timer !== undefined) return;
      left = LONGEST_MS / REPEAT_MS;
      timer = setInterval(() => {
        left -= 1;
        if (left > 0) show();
        else stop();
      }, REPEAT_MS).unref();
      show();
    },
    stop,
  };
}
