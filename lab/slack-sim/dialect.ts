import { gzipSync } from "node:zlib";
import type { Json } from "./world.ts";

/**
 * The form of Slack's payloads and responses. `usual` has all fields that Slack sends to most apps. `spare` has only
 * documented fields, in another order, and its responses look as if a proxy had changed them: compressed, in chunks and
 * with warnings.
 */
export type Dialect = "usual" | "spare";

/** Fields of an event's envelope that `spare` omits. */
const SPARED_AROUND = [
  "token",
  "context_team_id",
  "context_enterprise_id",
  "event_context",
  "authorizations",
  "is_ext_shared_channel",
];
/** Fields of an event and of its message that `spare` omits. */
const SPARED = [
  "bot_profile",
  "channel_type",
  "client_msg_id",
  "hidden",
  "parent_user_id",
  "previous_message",
  "team",
  "upload",
];
/** Fields that `spare` omits in the response to a call that writes a message. */
const SPARED_ANSWER = ["message", "channel", "text"];

/** Returns the event as the app receives it. */
export function toToldEvent(payload: Json, dialect: Dialect): Json {
  if (dialect === "usual") return payload;
  const event = without(payload["event"] as Json, SPARED);
  const message = event["message"];
  const inner = typeof message === "object" ? { message: reversed(without(message as Json, SPARED)) } : {};
  const around = without(payload, SPARED_AROUND);
  return reversed({ ...around, event_time: String(payload["event_time"]), event: reversed({ ...event, ...inner }) });
}

interface Told {
  headers: Record<string, string>;
  /** Chunks of a response, in order. */
  parts: readonly (string | Uint8Array)[];
}

export function toToldAnswer(method: string, body: Json, dialect: Dialect): Told {
  if (dialect === "usual") return { headers: {}, parts: [JSON.stringify(body)] };
  const told = method.startsWith("chat.") ? without(body, SPARED_ANSWER) : body;
  const warned = { ...told, warning: "superfluous_charset", response_metadata: toWarned(body["response_metadata"]) };
  const packed = gzipSync(JSON.stringify(reversed(warned), undefined, 2));
  const middle = Math.ceil(packed.length / 2);
  const headers = { "content-encoding": "gzip", "transfer-encoding": "chunked" };
  return { headers, parts: [packed.subarray(0, middle), packed.subarray(middle)] };
}

function toWarned(metadata: unknown): Json {
  return { ...(metadata as Json | undefined), warnings: ["superfluous_charset"] };
}

function without(body: Json, names: readonly string[]): Json {
  return Object.fromEntries(Object.entries(body).filter(([name]) => !names.includes(name)));
}

function reversed(body: Json): Json {
  return Object.fromEntries(Object.entries(body).toReversed());
}
