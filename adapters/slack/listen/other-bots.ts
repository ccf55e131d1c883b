import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import { type SlackMessage, toConversationId } from "./inbound.ts";

/** Questions of bots that are answered in one conversation before a person says something there. */
const MAX_IN_A_ROW = 3;
/** Questions of one bot that are answered in one channel. */
const MAX_AN_HOUR = 20;
const HOUR_MS = 60 * 60_000;
const MAX_KEPT = 2_000;

/** Decides which other bots are heard. */
export interface OtherBots {
  /** People always; a bot that is on the list. */
  isAllowed(message: SlackMessage): boolean;
  /** The same for a question, which counts: two bots that answer each other stop soon. */
  mayAsk(message: SlackMessage): boolean;
}

/** `allowed` are user ids or bot ids. */
export function createOtherBots(allowed: readonly string[], now: () => number): OtherBots {
  /** By conversation: the times of the questions that bots asked since a person wrote, by the message's ts. */
  const inARow = new BoundedMap<string, Map<string, number>>(MAX_KEPT);
  /** By channel and bot: the times of its questions within the last hour, by the message's ts. */
  const ofLate = new BoundedMap<string, Map<string, number>>(MAX_KEPT);

  function isAllowed({ isBot, userId, raw }: SlackMessage): boolean {
    return !isBot || allowed.includes(userId) || allowed.includes(String(raw["bot_id"]));
  }

  return {
    isAllowed,
    mayAsk(message) {
      const conversation = toConversationId(message);
      if (!message.isBot) inARow.delete(conversation);
      if (!message.isBot || !isAllowed(message)) return !message.isBot;
      const row = note(inARow, conversation, message.ts, now());
      const recent = note(ofLate, `${message.channelId} ${message.userId}`, message.ts, now());
      for (const [ts, atMs] of recent) if (atMs < now() - HOUR_MS) recent.delete(ts);
      return row.size <= MAX_IN_A_ROW && recent.size <= MAX_AN_HOUR;
    },
  };
}

/** A message that is delivered twice counts once. */
function note(kept: Map<string, Map<string, number>>, key: string, ts: string, atMs: number): Map<string, number> {
  const asked = kept.get(key) ?? new Map<string, number>();
  asked.set(ts, asked.get(ts) ?? atMs);
  kept.set(key, asked);
  return asked;
}
