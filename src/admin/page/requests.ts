import type { Me } from "./wire.ts";

/** The server refused the request or is unreachable. The message is shown to the administrator. */
class RequestError extends Error {
  override readonly name = "RequestError";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

let csrfToken = "";
let onSignedOut = () => {};

export function whenSignedOut(listener: () => void): void {
  onSignedOut = listener;
}

export async function readMe(): Promise<Me> {
  return keepToken(await ask<Me>("session"));
}

export async function signIn(password: string): Promise<Me> {
  return keepToken(await ask<Me>("session", { method: "POST", body: JSON.stringify({ password }) }));
}

export async function signOut(): Promise<void> {
  await ask("session", { method: "DELETE" });
  onSignedOut();
}

/** Rejects with a `RequestError`. */
export async function ask<T>(path: string, init: RequestInit = {}): Promise<T> {
  const headers = { "content-type": "application/json", "x-csrf-token": csrfToken };
  const response = await fetch(`/admin/api/${path}`, { ...init, headers }).catch(() => {
    throw new RequestError(0, "The server is unreachable.");
  });
  const body = (await response.json().catch(() => ({}))) as T & { error?: string };
  if (response.ok) return body;
  if (response.status === 401 && path !== "session") onSignedOut();
  throw new RequestError(response.status, body.error ?? `The server responded with ${response.status}.`);
}

/** Turns any rejection into a sentence for the administrator. */
export function describeFailure(error: unknown): string {
  return error instanceof RequestError ? error.message : "This page has failed. Reload it.";
}

/** An open page reloads its data at this interval. */
const AGAIN_MS = 5_000;

/**
 * Loads a path now, at intervals and on each call of `look`, until `end` is called. Reports each response or failure,
 * but ignores responses for an earlier path.
 */
export function follow<T>(
  path: () => string,
  read: (path: string) => Promise<T>,
  take: (found: T | undefined, words: string) => void,
) {
  async function look(): Promise<void> {
    const requested = path();
    const [found, words] = await read(requested).then(
      (found) => [found, ""] as const,
      (error: unknown) => [undefined, describeFailure(error)] as const,
    );
    if (requested === path()) take(found, words);
  }

  void look();
  const timer = setInterval(() => void look(), AGAIN_MS);
  return { look: () => void look(), end: () => clearInterval(timer) };
}

function keepToken(me: Me): Me {
  csrfToken = me.csrfToken;
  return me;
}
