import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

/** Agreeing at Slack's page takes people less than this. */
export const STATE_MS = 10 * 60_000;

/** Proof that who comes back from Slack is who was sent there, from here and not long ago. */
export interface States {
  create(): string;
  /** Whether a state is one of ours, and still good. */
  isGood(state: string): boolean;
}

export function createStates(secret: string, now: () => number): States {
  const sign = (text: string) => createHmac("sha256", secret).update(`slack-install:${text}`).digest("base64url");

  return {
    create() {
      const text = `${randomBytes(16).toString("base64url")}.${Math.ceil(now() + STATE_MS)}`;
      return `${text}.${sign(text)}`;
    },
    isGood(state) {
      const [, text = "", expiresAt = "", signature = ""] = /^([\w-]{22}\.(\d{1,16}))\.([\w-]+)$/.exec(state) ?? [];
      return isSame(signature, sign(text)) && Number(expiresAt) > now();
    },
  };
}

/** Takes as long for a wrong guess that begins well as for any other. */
export function isSame(given: string, wanted: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)];
  return a.length === b.length && timingSafeEqual(a, b);
}
