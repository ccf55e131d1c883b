import type { Hono } from "hono";
import { waitAtMost } from "../../src/concurrency/deadlines.ts";
import { once } from "../../src/concurrency/once.ts";
import type { Adapter } from "../../src/port/adapter.ts";
import { withHome } from "./act/home.ts";
import { createSlackApi } from "./api/client.ts";
import { describeAuthError } from "./api/error.ts";
import { PLATFORM } from "./ids.ts";
import { createIncoming } from "./incoming.ts";
import { createSingleWorkspace } from "./install/single-workspace.ts";
import type { SlackAdapterOptions } from "./options.ts";
import { createOutbound } from "./write/outbound.ts";

const SETTLE_MS = 1_000;

export interface SlackAdapter extends Adapter {
  /** Routes for the HTTP server. Undefined in Socket Mode. */
  app: Hono | undefined;
}

/** Slack through Bolt: mentions, threads, direct messages, commands and buttons. */
export function createSlackAdapter(options: SlackAdapterOptions): SlackAdapter {
  const { installed, apiUrl, log } = options;
  const onFatal = once(options.onFatal);
  let isListening = false;
  const api = createSlackApi({
    apiUrl,
    // Uses a monotonic clock, so that a pause keeps its length if someone changes the wall clock.
    now: () => performance.now(),
    // A refused call can be the only sign of a revoked token: the bot still receives everything but cannot answer.
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

  /** After this, a refused token is not reported, because the adapter stops anyway. */
  async function pause(): Promise<void> {
    isListening = false;
    await incoming.pause();
  }

  return {
    platform: PLATFORM,
    ...incoming,
    ...outbound,
    sink: (address, right) => withHome(outbound.sink(address, right), address, redrawHome),
    async listen(accept) {
      await incoming.listen(accept);
      isListening = true;
    },
    pause,
    async close() {
      await pause();
      // Lets edits in flight reach Slack before the process exits.
      await waitAtMost(api.settled(), SETTLE_MS);
    },
  };
}
