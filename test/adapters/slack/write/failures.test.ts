import { describe, expect, test } from "vitest";
import { ApiError } from "../../../../adapters/slack/api/error.ts";
import { guarded } from "../../../../adapters/slack/write/failures.ts";
import { SinkError } from "../../../../src/port/errors.ts";

const signal = new AbortController().signal;

async function kindOf(code: string, status = 200): Promise<string> {
  const refusal = new ApiError("chat.update", `Slack refused it: ${code}.`, { code, status });
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
    "",
  ])("a refusal to change a message seals the message, and the bot can still try to post others: %s", async (code) => {
    expect(await kindOf(code, code === "" ? 404 : 200)).toBe("sealed");
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
  ])(
    "a refusal to change a message says something about the message, its channel or its text: %s",
    async (code, kind) => {
      expect(await kindOf(code)).toBe(kind);
    },
  );
});
