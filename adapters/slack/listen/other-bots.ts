import { type Said, toConversationId } from "./inbound.ts";

/** Questions of bots that are answered in one conversation before a person says something there. */
const MAX_IN_A_ROW = 3;
/** Questions of one bot that are answered in one channel. */
const MAX_AN_HOUR = 20;
const HOUR_MS = 60 * 60_000;
const MAX_KEPT = 2_000;

/** Which other bots are heard. */
export interface OtherBots {
  /** People always; a bot that is on the list. */
  isAllowed(said: Said): boolean;
  /** The same for a question, which counts: two bots that answer each other stop soon. */
  mayAsk(said: Said): boolean;
}

/** `allowed` are user ids or bot ids. */
export function createOtherBots(allowed: readonly string[], now: () => number): OtherBots {
  /** When questions were asked, by the message. */
  const inARow = new Map<string, Map<string, number>>();
  const ofLate = new Map<string, Map<string, number>>();

  function isAllowed({ isBot, userId, raw }: Said): boolean {
    return !isBot || allowed.includes(userId) || allowed.includes(String(raw["bot_id"]));
  }

  return {
    isAllowed,
    mayAsk(said) {
      const conversation = toConversationId(said);
      if (!said.isBot) inARow.delete(conversation);
      if (!said.isBot || !isAllowed(said)) return !said.isBot;
      const row = note(inARow, conversation, said.ts, now());
      const recent = note(ofLate, `${said.channelId} ${said.userId}`, said.ts, now());
      for (const [ts, atMs] of recent) if (atMs < now() - HOUR_MS) recent.delete(ts);
      return row.size <= MAX_IN_A_ROW && recent.size <= MAX_AN_HOUR;
    },
  };
}

/** A message that is delivered twice counts once. */
function note(kept: Map<string, Map<string, number>>, key: string, ts: string, atMs: number): Map<string, number> {
  const asked = kept.get(key) ?? new Map<string, number>();
  asked.set(ts, asked.get(ts) ?? atMs);
  kept.delete(key);
  kept.set(key, asked);
  const [oldest] = kept.keys();
  if (kept.size > MAX_KEPT && oldest !== undefined) kept.delete(oldest);
  return asked;
}
