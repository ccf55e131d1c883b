import type { Payload } from "./world.ts";

/** Discord's status, code and message for each refusal. */
const REFUSALS = {
  unauthorized: [401, 0, "401: Unauthorized"],
  "unknown-route": [404, 0, "404: Not Found"],
  "unknown-application": [404, 10002, "Unknown Application"],
  "unknown-channel": [404, 10003, "Unknown Channel"],
  "unknown-guild": [404, 10004, "Unknown Guild"],
  "unknown-member": [404, 10007, "Unknown Member"],
  "unknown-message": [404, 10008, "Unknown Message"],
  "unknown-user": [404, 10013, "Unknown User"],
  "unknown-webhook": [404, 10015, "Unknown Webhook"],
  "unknown-interaction": [404, 10062, "Unknown interaction"],
  "unknown-command": [404, 10063, "Unknown application command"],
  "old-message-edits": [400, 30046, "Maximum number of edits to messages older than 1 hour reached. Try again later"],
  "too-large": [413, 40005, "Request entity too large"],
  "already-acknowledged": [400, 40060, "Interaction has already been acknowledged."],
  "missing-access": [403, 50001, "Missing Access"],
  "foreign-message": [403, 50005, "Cannot edit a message authored by another user"],
  "empty-message": [400, 50006, "Cannot send an empty message"],
  "closed-dms": [403, 50007, "Cannot send messages to this user"],
  "not-text": [400, 50008, "Cannot send messages in a non-text channel"],
  "missing-permissions": [403, 50013, "Missing Permissions"],
  "wrong-channel-type": [400, 50024, "Cannot execute action on this channel type"],
  "expired-token": [401, 50027, "Invalid Webhook Token"],
  "invalid-version": [400, 50041, "Invalid API version"],
  archived: [400, 50083, "Thread is archived"],
  "invalid-json": [400, 50109, "The request body contains invalid JSON."],
  "no-history": [400, 160002, "Cannot reply without permission to read message history"],
  "thread-exists": [400, 160004, "A thread has already been created for this message"],
  locked: [400, 160005, "Thread is locked"],
  "too-many-threads": [400, 160006, "Maximum number of active threads reached"],
} as const satisfies Record<string, readonly [status: number, code: number, message: string]>;

export type RefusalName = keyof typeof REFUSALS;

/** Discord refuses a call. The server turns this into an error response. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly status: number;
  readonly body: Payload;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, body: Payload, headers: Readonly<Record<string, string>> = {}) {
    super(String(body["message"]));
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}

export function refuse(name: RefusalName): Refusal {
  const [status, code, message] = REFUSALS[name];
  return new Refusal(status, { message, code });
}

/** An invalid field: its path, Discord's code and a message. */
export interface FormProblem {
  path: readonly (string | number)[];
  code: string;
  message: string;
}

/** Refuses a body with invalid fields, nested as in Discord's responses. */
export function refuseForm(...problems: FormProblem[]): Refusal {
  const errors: Payload = {};
  for (const { path, code, message } of problems) {
    let at = errors;
    for (const key of path) at = (at[String(key)] ??= {}) as Payload;
    at["_errors"] = [...((at["_errors"] as Payload[] | undefined) ?? []), { code, message }];
  }
  return new Refusal(400, { message: "Invalid Form Body", code: 50035, errors });
}

/** A 429 that does not come from a rate limit, but for example from slow mode. */
export function refuseForNow(code: number, message: string, retryAfterMs: number): Refusal {
  const seconds = retryAfterMs / 1000;
  return new Refusal(
    429,
    { message, retry_after: seconds, global: false, code },
    { "Retry-After": String(Math.ceil(seconds)), "X-RateLimit-Scope": "shared" },
  );
}
