import { expect, test } from "vitest";
import { readFinish } from "../../src/turn/finish.ts";

const REASONS = [
  ["whole", "stop STOP end_turn stop_sequence eos eos_token tool_calls tool_use function_call complete completed done"],
  ["length", "length MAX_TOKENS model_length max_output_tokens"],
  ["filtered", "content_filter SAFETY prohibited_content recitation blocklist spii refusal image_safety"],
  ["filtered", "guardrail_intervened sensitive"],
  ["broken", "insufficient_system_resource abort network_error error cancelled something_else"],
] as const;

test.each(REASONS)("a finish reason means %s if it is one of: %s", (finish, reasons) => {
  for (const reason of reasons.split(" ")) expect([reason, readFinish(reason)]).toEqual([reason, finish]);
});
