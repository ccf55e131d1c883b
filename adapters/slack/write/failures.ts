import { SinkError, type SinkErrorKind, type SinkErrorOptions } from "../../../src/port/errors.ts";
import { ApiError, isUncertain } from "../api/error.ts";

interface Meaning {
  kind: SinkErrorKind;
  /** The problem and what to do, for codes that do not explain themselves. */
  words?: string;
}

const NOT_INSTALLED = "token_revoked token_expired invalid_auth not_authed account_inactive app_not_installed";
const INSTALL = "Install the app in that workspace again.";
const RESTRICTED = "The workspace restricts who can post there; an admin can allow the app.";

/** Slack's codes for missing permissions that need no longer explanation. */
const FORBIDDEN =
  "cant_delete_message message_not_owned_by_app is_inactive channel_type_not_supported no_permission " +
  "access_denied team_access_not_granted org_login_required not_allowed_token_type user_is_restricted " +
  "cannot_dm_bot unknown_method";

const MEANINGS: ReadonlyMap<string, Meaning> = new Map<string, Meaning>([
  ...FORBIDDEN.split(" ").map((code): [string, Meaning] => [code, { kind: "forbidden" }]),
  ...NOT_INSTALLED.split(" ").map((code): [string, Meaning] => [code, { kind: "forbidden", words: INSTALL }]),
  ["message_not_found", { kind: "gone", words: "The message was deleted." }],
  ["thread_not_found", { kind: "gone", words: "The thread was deleted." }],
  ["channel_not_found", { kind: "gone", words: "The channel was deleted, or is private and the bot is not in it." }],
  ["cannot_reply_to_message", { kind: "gone", words: "This message doesn't accept replies." }],
  ["invalid_thread_ts", { kind: "gone" }],
  ["file_not_found", { kind: "gone", words: "The file was deleted." }],
  ["file_deleted", { kind: "gone", words: "The file was deleted." }],
  ["expired_url", { kind: "gone", words: "Slack doesn't accept responses to a command after half an hour." }],
  ["used_url", { kind: "gone", words: "The command has five answers, and Slack accepts no more." }],
  ["not_in_channel", { kind: "forbidden", words: "Someone in the channel must type /invite and the bot's name." }],
  ["is_archived", { kind: "forbidden", words: "The channel is archived and accepts no messages." }],
  ["user_not_in_channel", { kind: "forbidden", words: "The person is not in that channel." }],
  ["messages_tab_disabled", { kind: "forbidden", words: "The app's settings disable its messages tab." }],
  ["missing_scope", { kind: "forbidden", words: "Add the scope in the app's settings and install the app again." }],
  ["restricted_action", { kind: "forbidden", words: RESTRICTED }],
  ["edit_window_closed", { kind: "sealed", words: "The workspace does not allow edits to messages this old." }],
  ["cant_update_message", { kind: "sealed" }],
  ["block_mismatch", { kind: "sealed" }],
  ["ekm_access_denied", { kind: "forbidden", words: "An administrator has locked the workspace's keys." }],
  ["msg_too_long", { kind: "rejected", words: "The text is longer than Slack allows." }],
  ["msg_blocks_too_long", { kind: "rejected", words: "The text is longer than Slack allows." }],
  // Another process is still streaming the message. When that stream ends, the message accepts changes again.
  ["streaming_state_conflict", { kind: "unavailable" }],
  ["message_not_in_streaming_state", { kind: "unavailable" }],
  ["stopped_by_user", { kind: "unavailable" }],
]);

/** Converts a failed write to a `SinkError`. Returns a `SinkError` and the reason of an abort unchanged. */
function toReason(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted || error instanceof SinkError) return error;
  if (!(error instanceof ApiError)) {
    const words = error instanceof Error ? error.name : "unknown";
    return new SinkError("unavailable", `Slack could not be reached (${words}).`, { cause: error });
  }
  return toSinkError(error);
}

export function toSinkError(error: ApiError, options: SinkErrorOptions = {}): SinkError {
  if (error.retryAfterMs !== undefined) {
    return new SinkError("rate-limited", error.logMessage, { retryAfterMs: error.retryAfterMs });
  }
  const { kind, words } = meaningOf(error);
  const missing = error.needed === undefined ? {} : { missing: error.needed };
  const { logMessage, quote } = error;
  return new SinkError(kind, words === undefined ? logMessage : `${logMessage} ${words}`, {
    quote,
    ...missing,
    ...options,
  });
}

/** Slack's codes for a text or blocks that no method accepts. */
const OF_THE_BODY = /^(?:invalid_|no_text$|markdown_|metadata_|too_many_|message_limit|msg_)|too_long$/;
/** `chat.update` can refuse with these codes although `chat.postMessage` would still work. */
const OF_THE_METHOD = new Set([
  "message_not_owned_by_app",
  "unknown_method",
  "not_allowed_token_type",
  "method_deprecated",
  "no_permission",
]);

function meaningOf(error: ApiError): Meaning {
  if (isOfChanges(error)) return { kind: "sealed" };
  const known = MEANINGS.get(error.code);
  if (known !== undefined) return known;
  if (error.code.startsWith("restricted_action")) return { kind: "forbidden", words: RESTRICTED };
  if (error.code.startsWith("slack_connect")) return { kind: "forbidden" };
  if (isUncertain(error)) return { kind: "unavailable" };
  return { kind: error.status === 404 ? "gone" : "rejected" };
}

/** True if the message accepts no more changes. New messages may still be possible. */
export function isSealing(error: unknown): error is ApiError {
  return error instanceof ApiError && error.retryAfterMs === undefined && meaningOf(error).kind === "sealed";
}

/** True if Slack refused to change a message but may accept new posts. */
function isOfChanges(error: ApiError): boolean {
  const { method, code } = error;
  if (method !== "chat.update") return false;
  if (OF_THE_METHOD.has(code)) return true;
  const isKnown = MEANINGS.has(code) || /^(?:restricted_action|slack_connect|token_)/.test(code);
  return !isKnown && !OF_THE_BODY.test(code) && !isUncertain(error);
}

export async function guarded<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  try {
    return await work();
  } catch (error) {
    throw toReason(error, signal);
  }
}
