/** Slack's limits, which tests can change. */
export interface Limits {
  /** How Slack counts calls per minute: in any 60 seconds, or with an evenly refilling bucket. */
  kind: "sliding" | "token-bucket";
  /** Calls per minute, for each method in each workspace. */
  perMinute: Readonly<Record<string, number>>;
  /** How many posts in a row a channel accepts. One more becomes possible each second. */
  postBurst: number;
  /** How Slack refuses a call: with a 429 and `Retry-After`, or with status 200 and this error. */
  refusal: "http-429" | "ratelimited" | "rate_limited";
  /** `commercial` allows one page of 15 messages per minute, as for commercial apps outside the marketplace. */
  history: "internal" | "commercial";
  /** Maximum number of messages per page, whatever the app requests. */
  maxPage: number;
  /** Maximum size of a streamed message with its task cards, in bytes of UTF-8. */
  streamBytes: number;
  streamMs: number;
  triggerMs: number;
  /** How long an event's token permits searches. Slack's documentation says only that this is short. */
  actionTokenMs: number;
  responseUrlMs: number;
  responseUrlUses: number;
  /** Time after an upload until a message can display the file; `Infinity` means never. */
  readyMs: number;
  /** Time after an upload until its message appears. */
  sharingMs: number;
  /** Real time in which the app must acknowledge. */
  ackMs: number;
  /** Pauses before each retry of an event. */
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
    "assistant.search.context": 10,
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
    "users.conversations": TIER_3,
    "users.info": TIER_4,
    "users.list": TIER_2,
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
  actionTokenMs: 600_000,
  responseUrlMs: 1_800_000,
  responseUrlUses: 5,
  readyMs: 0,
  sharingMs: 30,
  ackMs: 3_000,
  retryMs: [0, 60_000, 300_000],
  pingMs: 10_000,
  maxConnections: 10,
};

/** Returns the calls per minute for a method; undefined if Slack does not limit it. */
export function callsPerMinute(limits: Limits, method: string): number | undefined {
  const isHistory = method === "conversations.history" || method === "conversations.replies";
  return isHistory && limits.history === "commercial" ? TIER_1 : limits.perMinute[method];
}
