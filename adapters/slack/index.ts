import type { Hono } from "hono";
import { waitAtMost } from "../../src/concurrency/deadlines.ts";
import { once } from "../../src/concurrency/once.ts";
import type { Adapter } from "../../src/port/adapter.ts";
import { createSlackApi } from "./api/client.ts";
import { describeAuthError } from "./api/error.ts";
import { PLATFORM } from "./ids.ts";
import { createIncoming } from "./incoming.ts";
import { createSingleWorkspace } from "./install/single-workspace.ts";
import { withHome } from "./interactions/home.ts";
import type { SlackAdapterOptions } from "./options.ts";
import { createOutbound } from "./write/outbound.ts";

/** Longest wait at the end for calls under way. */
const SETTLE_MS = 1_000;

/** The adapter, and what it serves on the one HTTP server. */
export interface SlackAdapter extends Adapter {
  /** Undefined with sockets. */
  app: Hono | undefined;
}

/** Slack: mentions, threads, direct messages, commands and buttons, on Bolt. */
export function createSlackAdapter(options: SlackAdapterOptions): SlackAdapter {
  const { installed, apiUrl, log } = options;
  const onFatal = once(options.onFatal);
  let isListening = false;
  const api = createSlackApi({
    apiUrl,
    // A monotonic clock: a pause lasts as long as Slack said, even if the wall clock is set.
    now: () => performance.now(),
    waits: options.waits,
    // A refused call may be the only sign of a revoked token, and without it the bot hears everybody and answers nobody.
    onRefused(_, error) {
      if (isListening && "botToken" in installed) onFatal(describeAuthError(error, "bot"));
    },
    async tokenOf(teamId, signal) {
      if ("botToken" in installed) return installed.botToken;
      return (await installed.workspaces.find(teamId, signal))?.token;
    },
  });
  const workspaces =
    "botToken" in installed ? createSingleWorkspace(installed.botToken, api, log) : installed.workspaces;
  const outbound = createOutbound({ ...options, api, workspaces });
  const { redrawHome, ...incoming } = createIncoming({ ...options, onFatal }, { api, workspaces });

  /** From here on a refused token is not reported: the adapter ends anyway. */
  async function pause(): Promise<void> {
    isListening = false;
    await incoming.pause();
  }

  return {
    platform: PLATFORM,
    ...incoming,
    ...outbound,
    sink: (address) => withHome(outbound.sink(address), address, redrawHome),
    async listen(accept) {
      await incoming.listen(accept);
      isListening = true;
    },
    pause,
    async close() {
      await pause();
      // Edits that are under way reach Slack before the process goes.
      await waitAtMost(api.settled(), SETTLE_MS);
    },
  };
}
