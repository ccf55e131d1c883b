/** How an answer ended, by the gateway's `finish_reason`. */
export type Finish = "whole" | "length" | "filtered" | "broken";

const FINISHES: ReadonlyMap<string, Finish> = new Map<string, Finish>([
  ...toEntries("whole", "stop end_turn stop_sequence eos eos_token tool_calls tool_use function_call"),
  ...toEntries("whole", "complete completed done"),
  ...toEntries("length", "length max_tokens model_length max_output_tokens"),
  ...toEntries("filtered", "content_filter safety prohibited_content recitation blocklist spii refusal"),
  ...toEntries("filtered", "image_safety guardrail_intervened sensitive"),
]);

function toEntries(finish: Finish, reasons: string): Array<[string, Finish]> {
  return reasons.split(" ").map((reason) => [reason, finish]);
}

/** Reads a reason in any case. An unknown one, such as `network_error`, means that the answer broke off. Pure. */
export function readFinish(reason: string): Finish {
  return FINISHES.get(reason.toLowerCase()) ?? "broken";
}
