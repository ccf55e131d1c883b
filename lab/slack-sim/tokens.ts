import { setImmediate as soon } from "node:timers/promises";
import type { Core } from "./core.ts";
import type { Method } from "./method.ts";
import { SlackRefusal } from "./refusal.ts";
import type { Organisation, Workspace } from "./world.ts";

/** A call's token, and the workspace or channel that the call is for. */
export interface Claim {
  token: string | undefined;
  /** The call's `team_id`, which an organisation's token needs unless the channel identifies the workspace. */
  teamId: string | undefined;
  channelId: string | undefined;
  /** True if the app knew that the token was revoked when it sent the call. */
  wasTold: boolean;
}

export interface Tokens {
  /** Finds the workspace of a token, or the organisation that installed the app for all its workspaces. */
  find(token: string | undefined): Workspace | Organisation | undefined;
  /** True if the app can know that this token is revoked. */
  isTold(token: string | undefined): boolean;
  /** Throws if a token is missing, unknown, revoked, of the wrong kind, or for another workspace. */
  workspaceOf(claim: Claim, kind: Method["token"], method: string): Workspace;
}

export function createTokens({ app, violations, workspaces, organisations }: Core): Tokens {
  /** Revoked tokens for which the app has already received an error. */
  const told = new Set<string>();
  const find = (token: string | undefined) =>
    [...workspaces.values(), ...organisations.values()].find(({ botToken }) => botToken === token);

  /** Returns the workspace that a call with an organisation's token is for. */
  function choose({ id, granted }: Organisation, { teamId, channelId }: Claim, method: string): Workspace {
    const own = [...workspaces.values()].filter(({ organisation }) => organisation?.id === id);
    const [first] = own;
    if (method.startsWith("auth.") && teamId === undefined && first !== undefined) return first;
    const byChannel = own.find(({ channels }) => channelId !== undefined && channels.has(channelId));
    const found = teamId === undefined ? byChannel : own.find((one) => one.id === teamId);
    if (found === undefined) throw new SlackRefusal(teamId === undefined ? "missing_argument" : "team_not_found");
    if (!granted.has(found.id)) throw new SlackRefusal("team_access_not_granted");
    return found;
  }

  /**
   * Records, after a moment, that the app knows the token is revoked. A parallel call that the app sent earlier can
   * still arrive.
   */
  async function tell(token: string): Promise<void> {
    await soon();
    await soon();
    told.add(token);
  }

  return {
    find,
    isTold: (token = "") => told.has(token),
    workspaceOf(claim, kind, method) {
      const { token, wasTold } = claim;
      const anyWorkspace = workspaces.values().next().value;
      if (anyWorkspace === undefined) throw new SlackRefusal("fatal_error");
      if (kind === "none") return anyWorkspace;
      if (token === undefined || token === "") throw new SlackRefusal("not_authed");
      const owner = find(token);
      const isApp = token === app.appToken;
      if (owner === undefined && !isApp) throw new SlackRefusal("invalid_auth");
      if (isApp !== (kind === "app")) throw new SlackRefusal("not_allowed_token_type");
      if (owner?.revoked !== undefined) {
        if (wasTold) {
          violations.record("revoked-token", `${method} was called with a token that was refused before.`);
        }
        void tell(token);
        throw new SlackRefusal(owner.revoked);
      }
      if (owner === undefined) return anyWorkspace;
      return "granted" in owner ? choose(owner, claim, method) : owner;
    },
  };
}
