/** Numbers of Slack that tests may change. */
export interface Limits {
  /** How calls per minute are counted: over any 60 seconds, or as a bucket that fills evenly. */
  kind: "sliding" | "token-bucket";
  /** Calls per minute, per method and workspace. */
  perMinute: Readonly<Record<string, number>>;
  /** Posts into one channel that may come at once; one more comes back each second. */
  postBurst: number;
  /** How a refusal looks: a 429 with `Retry-After`, or HTTP 200 with this error. */
  refusal: "http-429" | "ratelimited" | "rate_limited";
  /** Apps that are sold outside the marketplace read one page of 15 messages per minute. */
  history: "internal" | "commercial";
  /** Messages of a page at most, whatever is asked for. */
  maxPage: number;
  /** Longest streamed message in bytes of UTF-8, cards of tasks included. */
  streamBytes: number;
  streamMs: number;
  triggerMs: number;
  responseUrlMs: number;
  responseUrlUses: number;
  /** From the completion of an upload to when a message can show the file inside; without end: never. */
  readyMs: number;
  /** From the completion of an upload to the message that shares it. */
  sharingMs: number;
  /** Real time that the app has to acknowledge a delivery. */
  ackMs: number;
  /** Pauses before an event is delivered again. */
  retryMs: readonly number[];
  /** Real time between pings on a socket. */
  pingMs: number;
  maxConnections: number;
}

const TIER_1 = 1;
const TIER_2 = 20;
const TIER_3 = 50;
const TIER_4 = 100;
const SPECIAL = 600;

export const DEFAULT_LIMITS: Limits = {
  kind: "sliding",
  perMinute: {
    "agents.sessions.setStatus": TIER_3,
    "apps.connections.open": TIER_2,
    "assistant.threads.setStatus": SPECIAL,
    "assistant.threads.setSuggestedPrompts": TIER_4,
    "assistant.threads.setTitle": TIER_3,
    "auth.revoke": TIER_3,
    "auth.test": SPECIAL,
    "bots.info": TIER_3,
    "chat.appendStream": TIER_4,
    "chat.delete": TIER_3,
    "chat.getPermalink": SPECIAL,
    "chat.postEphemeral": TIER_4,
    "chat.postMessage": 300,
    "chat.startStream": TIER_2,
    "chat.stopStream": TIER_2,
    "chat.update": TIER_3,
    "conversations.history": TIER_3,
    "conversations.info": TIER_3,
    "conversations.join": TIER_3,
    "conversations.members": TIER_4,
    "conversations.open": TIER_3,
    "conversations.replies": TIER_3,
    "files.completeUploadExternal": TIER_4,
    "files.delete": TIER_3,
    "files.getUploadURLExternal": TIER_4,
    "files.info": TIER_4,
    "oauth.v2.access": TIER_4,
    "reactions.add": TIER_3,
    "reactions.remove": TIER_2,
    "team.info": TIER_3,
    "usergroups.users.list": TIER_2,
    "users.info": TIER_4,
    "views.open": TIER_4,
    "views.publish": TIER_4,
    "views.push": TIER_4,
    "views.update": TIER_4,
  },
  postBurst: 2,
  refusal: "http-429",
  history: "internal",
  maxPage: 999,
  streamBytes: 11_000,
  streamMs: 300_000,
  triggerMs: 3_000,
  responseUrlMs: 1_800_000,
  responseUrlUses: 5,
  readyMs: 0,
  sharingMs: 30,
  ackMs: 3_000,
  retryMs: [0, 60_000, 300_000],
  pingMs: 10_000,
  maxConnections: 10,
};

/** Calls per minute of a method as these limits have it; undefined where nothing is counted. */
export function callsPerMinute(limits: Limits, method: string): number | undefined {
  const isHistory = method === "conversations.history" || method === "conversations.replies";
  return isHistory && limits.history === "commercial" ? TIER_1 : limits.perMinute[method];
}
