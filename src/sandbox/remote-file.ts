import { isIP } from "node:net";
import { Agent, request } from "undici";
import { createPublicLookup, isPublicAddress } from "../media/public-address.ts";

export const MAX_FILE_BYTES = 20 * 1024 * 1024;
const TIMEOUT_MS = 10_000;

/** The sandbox could not fetch a file. The message completes the sentence "The file …" for the API's caller. */
export class RemoteFileError extends Error {
  override readonly name = "RemoteFileError";
}

/**
 * Fetches a file over http or https, without redirects and up to `MAX_FILE_BYTES`. Refuses private addresses when the
 * socket connects, except those of trusted origins. Rejects with `RemoteFileError`.
 */
export async function fetchRemoteFile(
  url: string,
  trustedOrigins: readonly string[],
  signal: AbortSignal,
): Promise<Buffer> {
  const target = readUrl(url);
  const isTrusted = trustedOrigins.includes(target.origin);
  const host = target.hostname.replace(/^\[|\]$/g, "");
  if (!isTrusted && isIP(host) !== 0 && !isPublicAddress(host)) throw notPublic();
  const agent = new Agent({ connect: isTrusted ? {} : { lookup: createPublicLookup(notPublic) } });
  try {
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
    const { statusCode, body } = await request(target, { dispatcher: agent, signal: deadline });
    if (statusCode !== 200) throw new RemoteFileError(`is not there: its server answers with status ${statusCode}.`);
    return await readCapped(body);
  } catch (error) {
    signal.throwIfAborted();
    throw toFileError(error);
  } finally {
    await agent.destroy();
  }
}

function readUrl(url: string): URL {
  const target = URL.parse(url);
  if (target === null) throw new RemoteFileError("has no valid URL.");
  if (target.protocol !== "http:" && target.protocol !== "https:")
    throw new RemoteFileError("must have an http or https URL.");
  if (target.username !== "" || target.password !== "")
    throw new RemoteFileError("must not have a name or password in its URL.");
  return target;
}

async function readCapped(body: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const part of body) {
    sizeBytes += part.length;
    if (sizeBytes > MAX_FILE_BYTES) throw new RemoteFileError(`is larger than ${MAX_FILE_BYTES} bytes.`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

function notPublic(): RemoteFileError {
  return new RemoteFileError("cannot be reached from the public network: its address is private.");
}

function toFileError(error: unknown): RemoteFileError {
  if (error instanceof RemoteFileError) return error;
  if (error instanceof Error && error.name === "TimeoutError") {
    return new RemoteFileError(`did not arrive within ${TIMEOUT_MS / 1000} seconds.`);
  }
  return new RemoteFileError("cannot be reached from the public network.");
}
