import { describe, expect, test } from "vitest";
import { SlackApiError } from "../../../../adapters/slack/api/error.ts";
import { guarded } from "../../../../adapters/slack/write/failures.ts";
import { SinkError } from "../../../../src/port/errors.ts";

const signal = new AbortController().signal;

/** What Slack's word for a refusal of a method means. */
async function kindOf(method: string, code: string, status = 200): Promise<string> {
  const refusal = new SlackApiError(method, `Slack refused ${method}: ${code}.`, { code, status });
  const error: unknown = await guarded(signal, () => Promise.reject(refusal)).catch((reason: unknown) => reason);
  return error instanceof SinkError ? error.kind : "none";
}

describe("a refusal to change a message on Slack", () => {
  test.each([
    "edit_window_closed",
    "cant_update_message",
    "block_mismatch",
    "message_not_owned_by_app",
    "unknown_method",
    "not_allowed_token_type",
    "some_error_of_tomorrow",
  ])("leaves it as it is, and may leave further ones: %s", async (code) => {
    expect(await kindOf("chat.update", code)).toBe("sealed");
  });

  test("is that too where the method is not there at all", async () => {
    expect(await kindOf("chat.update", "", 404)).toBe("sealed");
  });

  test.each([
    ["message_not_found", "gone"],
    ["channel_not_found", "gone"],
    ["is_inactive", "forbidden"],
    ["token_revoked", "forbidden"],
    ["missing_scope", "forbidden"],
    ["restricted_action_read_only_channel", "forbidden"],
    ["msg_too_long", "rejected"],
    ["invalid_blocks", "rejected"],
    ["invalid_blocks_format", "rejected"],
    ["no_text", "rejected"],
    ["streaming_state_conflict", "unavailable"],
    ["update_failed", "unavailable"],
    ["internal_error", "unavailable"],
  ])("says something else of the message, its place or its text: %s", async (code, kind) => {
    expect(await kindOf("chat.update", code)).toBe(kind);
  });
});

describe("a refusal to post a message on Slack", () => {
  test.each([
    ["unknown_method", "forbidden"],
    ["some_error_of_tomorrow", "rejected"],
    ["not_in_channel", "forbidden"],
    ["thread_not_found", "gone"],
  ])("means what it says: %s", async (code, kind) => {
    expect(await kindOf("chat.postMessage", code)).toBe(kind);
  });
});
