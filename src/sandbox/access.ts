import type { IncomingMessage } from "node:http";
import { ApiError, toRateLimited } from "./errors.ts";

export interface ModelCard {
  id: string;
  kind: "chat" | "image";
  hasTools: boolean;
  hasVision: boolean;
}

export interface Account {
  key: string;
  models: readonly string[];
  /** True if the image endpoint accepts this key only in a key header, and refuses it as a Bearer token (401). */
  imageByHeaderOnly: boolean;
}

export const MODELS: readonly ModelCard[] = [
  { id: "sandbox-chat", kind: "chat", hasTools: true, hasVision: true },
  { id: "sandbox-text", kind: "chat", hasTools: false, hasVision: false },
  { id: "sandbox-image", kind: "image", hasTools: false, hasVision: false },
];

export const ACCOUNTS: readonly Account[] = [
  { key: "sk-sandbox-all", models: ["sandbox-chat", "sandbox-text", "sandbox-image"], imageByHeaderOnly: false },
  { key: "sk-sandbox-chat", models: ["sandbox-chat", "sandbox-text"], imageByHeaderOnly: false },
  { key: "sk-sandbox-header", models: ["sandbox-chat", "sandbox-text", "sandbox-image"], imageByHeaderOnly: true },
];

const MAX_QUOTED_CHARS = 100;

/** More headers in which the image endpoint accepts a key. Google's client sends the second header. */
const IMAGE_KEY_HEADERS = ["x-sandbox-api-key", "x-goog-api-key"] as const;

/** Finds the account for a request's `Authorization: Bearer`. Throws a 401. */
export function readAccount(request: IncomingMessage): Account {
  const values = headerValues(request, "authorization");
  if (values.length === 0) {
    throw unauthorized(
      "No API key was sent. Send it in the header Authorization: Bearer <API_KEY>.",
      "missing_api_key",
    );
  }
  return findAccount(readBearer(values));
}

function readNamedKey(request: IncomingMessage): string | undefined {
  const keys = new Set(IMAGE_KEY_HEADERS.flatMap((name) => headerValues(request, name)));
  if (keys.size > 1) throw ambiguous();
  return [...keys][0];
}

/** Finds the account for a request to the model list of `/v1beta`, by any key header. Throws a 401. */
export function readListAccount(request: IncomingMessage): Account {
  const key = readNamedKey(request);
  return key === undefined ? readAccount(request) : findAccount(key);
}

/** Finds the account for an image request by one of `IMAGE_KEY_HEADERS`, or else by the Bearer token. Throws a 401. */
export function readImageAccount(request: IncomingMessage): Account {
  const named = readNamedKey(request);
  if (named !== undefined) return findAccount(named);
  const account = readAccount(request);
  if (!account.imageByHeaderOnly) return account;
  throw unauthorized(
    `This key is not accepted in Authorization on the image endpoint. Send it in the header ${IMAGE_KEY_HEADERS[0]} instead.`,
    "invalid_api_key",
  );
}

/** Finds the model that a request names. Throws a 404 (unknown model), a 403 (forbidden) or a 400 (wrong endpoint). */
export function requireModel(account: Account, id: string, kind: ModelCard["kind"]): ModelCard {
  const card = MODELS.find((model) => model.id === id);
  if (card === undefined) {
    throw new ApiError(
      `The model ${JSON.stringify(id.slice(0, MAX_QUOTED_CHARS))} does not exist. GET /v1/models lists the ones this key may use.`,
      {
        status: 404,
        type: "invalid_request_error",
        code: "model_not_found",
        param: "model",
      },
    );
  }
  if (!account.models.includes(id)) {
    throw new ApiError(`This key may not use the model ${id}. GET /v1/models lists the ones it may use.`, {
      status: 403,
      type: "permission_error",
      code: "model_not_permitted",
      param: "model",
    });
  }
  if (card.kind !== kind) throw wrongEndpoint(card);
  return card;
}

function wrongEndpoint({ id, kind }: ModelCard): ApiError {
  const path = kind === "chat" ? "/v1/chat/completions" : `/v1beta/models/${id}:generateContent`;
  return new ApiError(`The model ${id} does not answer here. It is a model for ${kind}s: use POST ${path}.`, {
    status: 400,
    type: "invalid_request_error",
    code: "model_not_supported",
    param: "model",
  });
}

function readBearer(values: string[]): string {
  if (values.length > 1) throw ambiguous();
  const match = /^Bearer +(\S+) *$/i.exec(values[0] ?? "");
  if (match?.[1] !== undefined) return match[1];
  throw unauthorized("The header Authorization must have the form Bearer <API_KEY>.", "invalid_api_key");
}

function findAccount(key: string): Account {
  const account = ACCOUNTS.find((known) => known.key === key);
  if (account !== undefined) return account;
  throw unauthorized("The API key is not known. The sandbox prints its keys when it starts.", "invalid_api_key");
}

/** Returns every value of a header: `request.headers` keeps only the first of several `Authorization` headers. */
function headerValues(request: IncomingMessage, name: string): string[] {
  return request.headersDistinct[name] ?? [];
}

function ambiguous(): ApiError {
  return unauthorized("The API key was sent more than once. Send it once, in one header.", "ambiguous_api_key");
}

function unauthorized(message: string, code: string): ApiError {
  const headers = { "www-authenticate": 'Bearer realm="sandbox"' };
  return new ApiError(message, { status: 401, type: "authentication_error", code, headers });
}

const WINDOW_MS = 60_000;

/** Counts a request. Above the limit, counts nothing and throws a 429 with `Retry-After` in whole seconds. */
export type CountRequest = (key: string, model: string) => void;

/** Allows `requestsPerMinute` in any 60 seconds, separately for each key and model. `now` returns milliseconds. */
export function createRateLimit(requestsPerMinute: number, now: () => number): CountRequest {
  const windows = new Map<string, number[]>();

  return (key, model) => {
    if (requestsPerMinute === Number.POSITIVE_INFINITY) return;
    const id = `${key} ${model}`;
    const at = now();
    const recent = (windows.get(id) ?? []).filter((countedAt) => countedAt > at - WINDOW_MS);
    windows.set(id, recent);
    if (recent.length >= requestsPerMinute) {
      const freeAt = (recent[0] ?? at) + WINDOW_MS;
      throw toRateLimited(model, { "retry-after": String(Math.ceil((freeAt - at) / 1000)) });
    }
    recent.push(at);
  };
}
