import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { describeError } from "../../../src/port/errors.ts";
import type { SlackApi } from "../api/client.ts";
import { describeAuthError, isHopeless } from "../api/error.ts";
import { readText } from "../api/wire.ts";
import type { Workspace, Workspaces } from "../api/workspaces.ts";

/** At startup, how long to retry if Slack is unreachable. */
const START_MS = 90_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 15_000;
const CALL_MS = 10_000;

/** The only workspace of a bot token, or the workspaces of its organisation. */
export interface SingleWorkspace extends Workspaces {
  /** Asks Slack for the token's workspace. Rejects with a plain sentence if Slack refuses or stays unreachable. */
  open(signal: AbortSignal): Promise<Workspace>;
}

export function createSingleWorkspace(botToken: string, api: Pick<SlackApi, "call">, log: Logger): SingleWorkspace {
  let known: Workspace | undefined;
  let isOrgWide = false;

  async function ask(signal: AbortSignal): Promise<Workspace> {
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(CALL_MS)]);
    // Passes no workspace, because the response names it.
    const found = await api.call("", "auth.test", {}, bounded);
    const ids = ["team_id", "user_id", "bot_id", "enterprise_id"].map((name) => readText(found[name]));
    const [ownId, botUserId, botId, enterpriseId] = ids;
    isOrgWide = found["is_enterprise_install"] === true && enterpriseId !== undefined;
    const teamId = isOrgWide ? enterpriseId : ownId;
    if (teamId === undefined || botUserId === undefined) {
      throw new Error(
        "Slack does not say which workspace this token belongs to. SLACK_BOT_TOKEN must start with xoxb-; leave SLACK_API_URL unset unless a proxy stands in for Slack.",
      );
    }
    // A server that imitates Slack can omit the bot's id. The bot's user also identifies the bot's own messages.
    return { teamId, enterpriseId, botUserId, botId: botId ?? botUserId, token: botToken };
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
          log.warn({ err: error }, "Could not reach Slack; retrying.");
          await sleep(pauseMs, undefined, { signal });
        }
      }
    },
    async find(teamId, signal, enterpriseId) {
      // Asks here too, because the adapter can continue an earlier process's replies before it listens.
      known ??= await ask(signal);
      if (!isOrgWide) return known.teamId === teamId ? known : undefined;
      return enterpriseId === undefined || enterpriseId === known.enterpriseId ? { ...known, teamId } : undefined;
    },
    sole: () => known,
  };
}

function toUnreachable(error: unknown): Error {
  return new Error(`Slack cannot be reached: ${describeError(error)}`, { cause: error });
}
