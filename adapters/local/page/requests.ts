import type { FileRow } from "./wire.ts";

const REQUEST_MS = 30_000;
const UPLOAD_MS = 10 * 60_000;

/** The server's answer to a request, in one sentence for the person. A lost connection is not this error. */
export class RefusedError extends Error {
  override readonly name = "RefusedError";
  /** The field of the form that is to be mended. */
  readonly field: string | undefined;

  constructor(answer: unknown, status: number) {
    super(readProblem(answer, status));
    this.field = (answer as { field?: string } | null)?.field;
  }
}

/** Tells the person why a request did not work. */
export function describeProblem(error: unknown): string {
  return error instanceof RefusedError ? error.message : "The server cannot be reached just now. Try again.";
}

/** Makes an id that no other request has. `crypto.randomUUID` is missing on a page served without TLS. */
export function createNonce(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Both reject with a `RefusedError` when the server says no, with another error when it cannot be reached. */
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

/** Sends what must not wait any longer while the page goes away; its answer finds nobody. */
export function postLast(path: string, body: object): void {
  const headers = { "Content-Type": "application/json" };
  fetch(path, { method: "POST", headers, body: JSON.stringify(body), keepalive: true }).catch(() => undefined);
}

async function request(path: string, init: RequestInit, timeoutMs = REQUEST_MS): Promise<unknown> {
  const response = await fetch(path, { ...init, signal: AbortSignal.timeout(timeoutMs) });
  const answer: unknown = await response.json().catch(() => ({}));
  // A server that is ending or starting counts as unreachable: the message waits for the next one.
  if (response.headers.has("retry-after")) throw new Error(readProblem(answer, response.status));
  if (!response.ok) throw new RefusedError(answer, response.status);
  return answer;
}

/** Uploads one file; `onProgress` gets the part sent, from 0 to 1. */
export function uploadFile(file: File, onProgress: (part: number) => void): Promise<FileRow> {
  const { promise, resolve, reject } = Promise.withResolvers<FileRow>();
  // fetch cannot tell how much of a body is sent.
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
    request.addEventListener(type, () =>
      reject(new RefusedError({ error: "The file did not get through. Try again." }, 0)),
    );
  }
  request.send(file);
  return promise;
}

function readProblem(answer: unknown, status: number): string {
  const problem = (answer as { error?: unknown } | null)?.error;
  return typeof problem === "string" ? problem : `The server answered with status ${status}.`;
}
