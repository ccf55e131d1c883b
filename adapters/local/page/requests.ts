import type { FileRow } from "./wire.ts";

const REQUEST_MS = 30_000;
const UPLOAD_MS = 10 * 60_000;

/** The server refused the request. The message is one sentence for the person. Lost connections are other errors. */
export class RefusedError extends Error {
  override readonly name = "RefusedError";
  readonly field: string | undefined;

  constructor(answer: unknown, status: number) {
    super(readProblem(answer, status));
    this.field = (answer as { field?: string } | null)?.field;
  }
}

export function describeProblem(error: unknown): string {
  return error instanceof RefusedError ? error.message : "The server is unreachable. Try again.";
}

/** Creates a unique id without `crypto.randomUUID`, which a page without TLS lacks. */
export function createNonce(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Rejects with a `RefusedError`, or with another error if the server is unreachable. So does `postJson`. */
export function getJson(path: string, headers: Record<string, string> = {}): Promise<unknown> {
  return request(path, { headers });
}

interface PostOptions {
  timeoutMs?: number;
  headers?: Record<string, string>;
}

export function postJson(path: string, body: object, options: PostOptions = {}): Promise<unknown> {
  const { timeoutMs = REQUEST_MS } = options;
  const headers = { "Content-Type": "application/json", ...options.headers };
  return request(path, { method: "POST", headers, body: JSON.stringify(body) }, timeoutMs);
}

/** Sends a last request while the page closes, and ignores the response. */
export function postLast(path: string, body: object): void {
  const headers = { "Content-Type": "application/json" };
  fetch(path, { method: "POST", headers, body: JSON.stringify(body), keepalive: true }).catch(() => undefined);
}

async function request(path: string, init: RequestInit, timeoutMs = REQUEST_MS): Promise<unknown> {
  const response = await fetch(path, { ...init, signal: AbortSignal.timeout(timeoutMs) });
  const answer: unknown = await response.json().catch(() => ({}));
  // A server that starts or stops counts as unreachable, so that the message waits for the next process.
  if (response.headers.has("retry-after")) throw new Error(readProblem(answer, response.status));
  if (!response.ok) throw new RefusedError(answer, response.status);
  return answer;
}

/** Uploads one file. `onProgress` receives the fraction that was sent, from 0 to 1. */
export function uploadFile(file: File, onProgress: (part: number) => void): Promise<FileRow> {
  const { promise, resolve, reject } = Promise.withResolvers<FileRow>();
  // `fetch` cannot report the progress of an upload.
  const request = new XMLHttpRequest();
  request.open("POST", "/local/files");
  request.timeout = UPLOAD_MS;
  request.responseType = "json";
  request.setRequestHeader("Content-Type", "application/octet-stream");
  request.setRequestHeader("X-File-Name", encodeURIComponent(file.name.toWellFormed()));
  request.upload.addEventListener("progress", ({ loaded, total }) => onProgress(total === 0 ? 0 : loaded / total));
  request.addEventListener("load", () => {
    if (request.status === 200) resolve(request.response as FileRow);
    else reject(new RefusedError(request.response, request.status));
  });
  for (const type of ["error", "timeout", "abort"]) {
    request.addEventListener(type, () => reject(new RefusedError({ error: "The upload failed. Try again." }, 0)));
  }
  request.send(file);
  return promise;
}

function readProblem(answer: unknown, status: number): string {
  const problem = (answer as { error?: unknown } | null)?.error;
  return typeof problem === "string" ? problem : `The server answered with status ${status}.`;
}
