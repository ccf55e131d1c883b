import type { Json } from "./world.ts";

/** Slack says no: HTTP 200 with `ok: false` and this code. */
export class SlackRefusal extends Error {
  override readonly name = "SlackRefusal";
  readonly code: string;
  /** Further fields of the answer. */
  readonly fields: Json;

  constructor(code: string, fields: Json = {}) {
    super(code);
    this.code = code;
    this.fields = fields;
  }
}

/** An argument that is missing or has the wrong form, in Slack's words. */
export function invalidArguments(problem: string): SlackRefusal {
  return new SlackRefusal("invalid_arguments", { response_metadata: { messages: [`[ERROR] ${problem}`] } });
}
