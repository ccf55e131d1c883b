import { setImmediate as soon } from "node:timers/promises";
import type { Core } from "./core.ts";
import type { Method } from "./method.ts";
import { SlackRefusal } from "./refusal.ts";
import type { Workspace } from "./world.ts";

/** Whose token it is, and whether it is still good. */
export interface Tokens {
  find(token: string | undefined): Workspace | undefined;
  /** Whether a call that comes in now is made by somebody who may know that its token is revoked. */
  isTold(token: string | undefined): boolean;
  /** Refuses a token that is missing, unknown, of the wrong kind, or revoked. `wasTold`: as its call came in. */
  workspaceOf(token: string | undefined, kind: Method["token"], method: string, wasTold: boolean): Workspace;
}

export function createTokens({ app, violations, workspaces }: Core): Tokens {
  /** Tokens that were told that they are revoked. */
  const told = new Set<string>();
  const find = (token: string | undefined) => [...workspaces.values()].find(({ botToken }) => botToken === token);

  /** A call that was under way beside the one that is refused may be read after it, however long ago it was sent. */
  async function tell(token: string): Promise<void> {
    await soon();
    await soon();
    told.add(token);
  }

  return {
    find,
    isTold: (token = "") => told.has(token),
    workspaceOf(token, kind, method, wasTold) {
      const anyWorkspace = workspaces.values().next().value;
      if (anyWorkspace === undefined) throw new SlackRefusal("fatal_error");
      if (kind === "none") return find(token) ?? anyWorkspace;
      if (token === undefined || token === "") throw new SlackRefusal("not_authed");
      const workspace = find(token);
      const isApp = token === app.appToken;
      if (workspace === undefined && !isApp) throw new SlackRefusal("invalid_auth");
      if (isApp !== (kind === "app")) throw new SlackRefusal("not_allowed_token_type");
      if (workspace?.revoked !== undefined) {
        if (wasTold) {
          violations.record("revoked-token", `${method} was called with a token that was refused before.`);
        }
        void tell(token);
        throw new SlackRefusal(workspace.revoked);
      }
      return workspace ?? anyWorkspace;
    },
  };
}
