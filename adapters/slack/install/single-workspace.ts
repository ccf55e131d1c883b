import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { describeError } from "../../../src/port/errors.ts";
import type { SlackApi } from "../api/client.ts";
import { describeAuthError, isHopeless } from "../api/error.ts";
import { readText } from "../api/wire.ts";
import type { Workspace, Workspaces } from "../api/workspaces.ts";

/** Until then a start that cannot reach Slack goes on trying. */
const START_MS = 90_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 15_000;
const CALL_MS = 10_000;

/** The one workspace that a bot token belongs to. */
export interface SingleWorkspace extends Workspaces {
  /** Asks Slack whose token it is. Rejects in plain words when it is not taken, or Slack stays out of reach. */
  open(signal: AbortSignal): Promise<Workspace>;
}

export function createSingleWorkspace(botToken: string, api: Pick<SlackApi, "call">, log: Logger): SingleWorkspace {
  let known: Workspace | undefined;

  async function ask(signal: AbortSignal): Promise<Workspace> {
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(CALL_MS)]);
    // The answer names the workspace.
    const found = await api.call("", "auth.test", {}, bounded);
    const told = ["team_id", "user_id", "bot_id", "enterprise_id"].map((name) => readText(found[name]));
    const [teamId, botUserId, botId, enterpriseId] = told;
    if (teamId === undefined || botUserId === undefined) {
      throw new Error(
        "Slack does not say whose token this is. SLACK_BOT_TOKEN is the one that begins with xoxb-, and SLACK_API_URL is Slack's own where it is unset.",
      );
    }
    // A stand-in for Slack may leave the bot's id out. The bot's own messages are known by its user too.
    return { teamId, enterpriseId, isSole: true, botUserId, botId: botId ?? botUserId, token: botToken };
  }

  return {
    async open(signal) {
      const deadline = performance.now() + START_MS;
      for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
        try {
          return (known = await ask(signal));
        } catch (error) {
          if (isHopeless(error)) throw new Error(describeAuthError(error, "bot"), { cause: error });
          if (performance.now() + pauseMs > deadline || signal.aborted) throw toUnreachable(error);
          log.warn({ err: error }, "Slack could not be reached; trying again.");
          await sleep(pauseMs, undefined, { signal });
        }
      }
    },
    async find(teamId, signal) {
      // Replies that an earlier process began may be written before the adapter listens.
      known ??= await ask(signal);
      return known.teamId === teamId ? known : undefined;
    },
    sole: () => known,
  };
}

function toUnreachable(error: unknown): Error {
  return new Error(`Slack cannot be reached: ${describeError(error)}`, { cause: error });
}
