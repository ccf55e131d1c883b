import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Keyv } from "keyv";
import { z } from "zod";
import type { Stores } from "../store/keyv.ts";

/** A session ends after this time, even if it is in use. */
const SESSION_MS = 12 * 3_600_000;
/** Maximum number of sessions of all administrators together. A further session ends the oldest one. */
const MAX_SESSIONS = 50;
const KEY = "sessions";

const sessions = z.array(
  z.object({
    /** A hash of the browser's token. A leaked store does not reveal the token. */
    hash: z.string(),
    /** Derived from the password, so a new password ends all sessions. */
    of: z.string(),
    name: z.string(),
    /** Unix milliseconds. */
    until: z.number(),
  }),
);

/** The administrators' sessions, shared by all processes that use the store. */
export interface Sessions {
  /** Resolves to the token for the browser. */
  begin(name: string): Promise<string>;
  /** Resolves to the session owner's name; undefined if there is no such session. */
  find(token: string): Promise<string | undefined>;
  end(token: string): Promise<void>;
}

export interface SessionsOptions {
  keyv: Keyv;
  inTurn: Stores["inTurn"];
  password: string;
  /** Unix milliseconds. */
  now(): number;
}

export const SESSION_SECONDS = SESSION_MS / 1_000;

export function createSessions({ keyv, inTurn, password, now }: SessionsOptions): Sessions {
  const of = createHash("sha256").update(`palaver admin sessions\n${password}`).digest("base64url");
  const hashOf = (token: string) => createHash("sha256").update(token).digest("base64url");

  async function read() {
    const kept = sessions.safeParse(await keyv.get(KEY)).data ?? [];
    return kept.filter((session) => session.of === of && session.until > now());
  }

  return {
    begin: (name) =>
      inTurn("admin:sessions", async () => {
        const token = randomBytes(32).toString("base64url");
        const session = { hash: hashOf(token), of, name, until: now() + SESSION_MS };
        await keyv.set(KEY, [...(await read()), session].slice(-MAX_SESSIONS), SESSION_MS);
        return token;
      }),
    async find(token) {
      const hash = hashOf(token);
      return (await read()).find((session) => session.hash === hash)?.name;
    },
    end: (token) =>
      inTurn("admin:sessions", async () => {
        const hash = hashOf(token);
        const rest = (await read()).filter((session) => session.hash !== hash);
        await keyv.set(KEY, rest, SESSION_MS);
      }),
  };
}

/**
 * Returns a token that proves that the dashboard's page sent a change. Another site cannot derive it from the cookie.
 */
export function toCsrfToken(key: string, token: string): string {
  return createHmac("sha256", key).update(`palaver admin csrf\n${token}`).digest("base64url");
}

export function isCsrfToken(given: string | undefined, expected: string): boolean {
  const bytes = Buffer.from(given ?? "", "utf8");
  const wanted = Buffer.from(expected, "utf8");
  return bytes.byteLength === wanted.byteLength && timingSafeEqual(bytes, wanted);
}
