import { lookup } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { Agent, request } from "undici";

export const MAX_FILE_BYTES = 20 * 1024 * 1024;
const TIMEOUT_MS = 10_000;

/** Addresses that are not on the public network, from the IANA special-purpose registries. */
const PRIVATE = new BlockList();
for (const [network, prefix] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
] as const) {
  PRIVATE.addSubnet(network, prefix, "ipv4");
}
/** The public part of IPv6; translated and tunnelled addresses inside it are private to be safe. */
const PUBLIC_V6 = new BlockList();
PUBLIC_V6.addSubnet("2000::", 3, "ipv6");
for (const [network, prefix] of [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
] as const) {
  PRIVATE.addSubnet(network, prefix, "ipv6");
}

/** A file could not be had. The message completes the sentence "The file …" for the caller of the API. */
export class RemoteFileError extends Error {
  override readonly name = "RemoteFileError";
}

/**
 * Fetches a file as the public network would see it: only http and https, no private address (checked at connect),
 * no redirect, at most `MAX_FILE_BYTES`. A URL of a trusted origin may be private. Rejects with `RemoteFileError`.
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
  const agent = new Agent({ connect: isTrusted ? {} : { lookup: lookupPublic } });
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

export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 4) return !PRIVATE.check(address, "ipv4");
  return PUBLIC_V6.check(address, "ipv6") && !PRIVATE.check(address, "ipv6");
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

/** Resolves a name and refuses it when any of its addresses is private: the address checked is the one connected to. */
const lookupPublic: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    if (error !== null) callback(error, []);
    else if (addresses.some(({ address }) => !isPublicAddress(address))) callback(notPublic(), []);
    else callback(null, addresses);
  });
};

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
