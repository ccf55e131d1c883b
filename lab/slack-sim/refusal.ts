import type { Json } from "./world.ts";

/** Thrown if Slack refuses a call. The response has status 200, `ok: false` and this code. */
export class SlackRefusal extends Error {
  override readonly name = "SlackRefusal";
  readonly code: string;
  /** Further fields in the response. */
  readonly fields: Json;

  constructor(code: string, fields: Json = {}) {
    super(code);
    this.code = code;
    this.fields = fields;
  }
}

/** A missing or malformed argument, described in Slack's words. */
export function invalidArguments(problem: string): SlackRefusal {
  return new SlackRefusal("invalid_arguments", { response_metadata: { messages: [`[ERROR] ${problem}`] } });
}
