import { z } from "zod";
import { SlackApiError } from "../api/error.ts";
import { callMethod } from "../api/web-api.ts";

const CALL_MS = 10_000;

const granted = z.object({
  ok: z.literal(true),
  access_token: z.string().min(1),
  refresh_token: z.string().optional(),
  expires_in: z.number().optional(),
  bot_user_id: z.string().optional(),
  team: z.object({ id: z.string(), name: z.string().default("") }).nullable(),
  is_enterprise_install: z.boolean().default(false),
  app_id: z.string().default(""),
});
const tested = z.object({
  ok: z.literal(true),
  team_id: z.string(),
  enterprise_id: z.string().nullish(),
  user_id: z.string(),
  bot_id: z.string(),
});

/** Slack's answer to a code, or to a refresh token. */
export interface Grant {
  token: string;
  refreshToken?: string;
  /** Absent for a token that does not expire. */
  expiresInS?: number;
  /** Absent for an installation in a whole organisation. */
  team?: { id: string; name: string };
  appId: string;
}

/** The bot behind a token. */
export interface TokenOwner {
  teamId: string;
  enterpriseId?: string;
  botUserId: string;
  botId: string;
}

/** Calls that are made before there is a token, or to learn whose it is. All reject with a `SlackApiError`. */
export interface Grants {
  exchange(code: string, redirectUri: string): Promise<Grant>;
  refresh(refreshToken: string): Promise<Grant>;
  identify(token: string): Promise<TokenOwner>;
}

export interface GrantsOptions {
  /** Ends in `/api/`. */
  apiUrl: string;
  clientId: string;
  clientSecret: string;
}

export function createGrants({ apiUrl, clientId, clientSecret }: GrantsOptions): Grants {
  async function call<T extends z.ZodType>(
    method: string,
    schema: T,
    form: Readonly<Record<string, string>>,
    token?: string,
  ): Promise<z.infer<T>> {
    const found = await callMethod({ apiUrl, token }, method, form, AbortSignal.timeout(CALL_MS));
    const answer = schema.safeParse(found);
    if (answer.success) return answer.data;
    const words = `Slack answered ${method} with something unexpected.`;
    throw new SlackApiError(method, words, { code: "", status: 200 });
  }

  async function grant(form: Readonly<Record<string, string>>): Promise<Grant> {
    const client = { client_id: clientId, client_secret: clientSecret };
    const answer = await call("oauth.v2.access", granted, { ...client, ...form });
    const { access_token: token, refresh_token: refreshToken, expires_in: expiresInS, team } = answer;
    return {
      token,
      ...(refreshToken !== undefined && { refreshToken }),
      ...(expiresInS !== undefined && { expiresInS }),
      ...(team !== null && !answer.is_enterprise_install && { team }),
      appId: answer.app_id,
    };
  }

  return {
    exchange: (code, redirectUri) => grant({ code, redirect_uri: redirectUri }),
    refresh: (refreshToken) => grant({ grant_type: "refresh_token", refresh_token: refreshToken }),
    async identify(token) {
      const owner = await call("auth.test", tested, {}, token);
      const { team_id: teamId, enterprise_id: enterpriseId, user_id: botUserId, bot_id: botId } = owner;
      return { teamId, ...(enterpriseId && { enterpriseId }), botUserId, botId };
    },
  };
}
