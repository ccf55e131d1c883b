import type { Me } from "./wire.ts";

/** The server refused; the message is a sentence for the person. */
class RequestError extends Error {
  override readonly name = "RequestError";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

let csrfToken = "";
/** Called when the session is over. */
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
    throw new RequestError(0, "The server cannot be reached.");
  });
  const body = (await response.json().catch(() => ({}))) as T & { error?: string };
  if (response.ok) return body;
  if (response.status === 401 && path !== "session") onSignedOut();
  throw new RequestError(response.status, body.error ?? `The server answered with ${response.status}.`);
}

/** A sentence for the person of whatever a request rejected with. */
export function describeFailure(error: unknown): string {
  return error instanceof RequestError ? error.message : "That did not work.";
}

/** Milliseconds between two readings of an open page. */
const AGAIN_MS = 5_000;

/**
 * Reads from a path now, at intervals, and whenever `look` is called, until `end`. Hands over each answer, or why there
 * is none, and drops the answers of an earlier path.
 */
export function follow<T>(
  path: () => string,
  read: (path: string) => Promise<T>,
  take: (found: T | undefined, words: string) => void,
) {
  async function look(): Promise<void> {
    const asked = path();
    const [found, words] = await read(asked).then(
      (found) => [found, ""] as const,
      (error: unknown) => [undefined, describeFailure(error)] as const,
    );
    if (asked === path()) take(found, words);
  }

  void look();
  const timer = setInterval(() => void look(), AGAIN_MS);
  return { look: () => void look(), end: () => clearInterval(timer) };
}

function keepToken(me: Me): Me {
  csrfToken = me.csrfToken;
  return me;
}
