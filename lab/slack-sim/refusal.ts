import type { Json } from "./world.ts";

/** Slack refuses a call: the response has status 200, `ok: false` and this code. */
export class SlackRefusal extends Error {
  override readonly name = "SlackRefusal";
  readonly code: string;
  /** More fields of the response. */
  readonly fields: Json;

  constructor(code: string, fields: Json = {}) {
    super(code);
    this.code = code;
    this.fields = fields;
  }
}

/** Refuses a missing or malformed argument, in Slack's words. */
export function invalidArguments(problem: string): SlackRefusal {
  return new SlackRefusal("invalid_arguments", { response_metadata: { messages: [`[ERROR] ${problem}`] } });
}
