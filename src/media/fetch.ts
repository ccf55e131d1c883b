import { isIP } from "node:net";
import { Agent, type Dispatcher, request } from "undici";
import { FileProblem, toShownSize } from "./file-problem.ts";
import { createPublicLookup, isPublicAddress, type Resolve } from "./public-address.ts";

export interface GuardedFetchOptions {
  /** The name of the platform that hosts the files, as messages show it. */
  owner: string;
  /** The allowed hosts, with https and the default port. `*.` before a name allows its subdomains. */
  hosts: readonly string[];
  /** The allowed origins. An origin can be http or a private address, such as `http://127.0.0.1:8080`. */
  origins: readonly string[];
  /** Resolves host names. Absent: the system's resolver. */
  resolve?: Resolve;
  /** The timeout for the whole file. Absent: `TOTAL_TIMEOUT_MS`. */
  totalTimeoutMs?: number;
}

export interface FileRequest {
  /** The fetch sends these headers only to the host in the URL. */
  headers?: Readonly<Record<string, string>>;
  maxBytes: number;
  /** True if the file itself can be a web page. If false, a web page counts as a login page. */
  mayBePage?: boolean;
  /** The maximum number of redirects. They lead only to allowed addresses and do not get the headers. Absent: 0. */
  maxRedirects?: number;
  /** Called with the address after the redirects. */
  onAddress?(url: string): void;
}

export interface GuardedFetch {
  /** Opens a file at an allowed address. Opening and reading reject with a `FileProblem` or the signal's reason. */
  open(url: string, options: FileRequest, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
}

const CONNECT_TIMEOUT_MS = 10_000;
const HEADERS_TIMEOUT_MS = 15_000;
const IDLE_TIMEOUT_MS = 20_000;
const TOTAL_TIMEOUT_MS = 60_000;
const PAGE_TYPES = /^(text\/html|application\/xhtml\+xml)\b/i;

export function createGuardedFetch(options: GuardedFetchOptions): GuardedFetch {
  const { owner } = options;
  // Each file gets its own connection, because downloads are rare and open connections would be idle.
  const guarded = new Agent({
    pipelining: 0,
    connect: { timeout: CONNECT_TIMEOUT_MS, lookup: createPublicLookup(toPrivateProblem, options.resolve) },
  });
  const plain = new Agent({ pipelining: 0, connect: { timeout: CONNECT_TIMEOUT_MS } });

  return {
    async open(text, { headers = {}, maxBytes, mayBePage = false, maxRedirects = 0, onAddress }, signal) {
      signal.throwIfAborted();
      const first = readAddress(text, options);
      const bounded = AbortSignal.any([signal, AbortSignal.timeout(options.totalTimeoutMs ?? TOTAL_TIMEOUT_MS)]);
      async function ask(
        { url, isListed }: Address,
        headers: FileRequest["headers"],
      ): Promise<Dispatcher.ResponseData> {
        const answer = await request(url, {
          dispatcher: isListed ? plain : guarded,
          headers: { "accept-encoding": "identity", ...headers },
          signal: bounded,
          headersTimeout: HEADERS_TIMEOUT_MS,
          bodyTimeout: IDLE_TIMEOUT_MS,
        });
        // A body can fail while no one reads it. Without a listener, that error would end the process.
        answer.body.on("error", () => {});
        return answer;
      }
      try {
        let { url } = first;
        let answer = await ask(first, headers);
        for (let left = maxRedirects; left > 0; left--) {
          const target = findTarget(answer, url);
          if (target === undefined) break;
          answer.body.destroy();
          const next = readAddress(target, options);
          url = next.url;
          answer = await ask(next, {});
        }
        onAddress?.(url.href);
        const problem = findProblem(answer, owner, maxBytes, mayBePage);
        if (problem === undefined) return readBody(answer.body, maxBytes, signal);
        // Do not read the rest of the body, because it can be endless.
        answer.body.destroy();
        throw problem;
      } catch (error) {
        signal.throwIfAborted();
        throw toProblem(error);
      }
    },
  };
}

interface Address {
  url: URL;
  /** True for an origin from the configuration, whose IP address is not checked. */
  isListed: boolean;
}

function findTarget({ statusCode, headers }: Dispatcher.ResponseData, url: URL): string | undefined {
  const { location } = headers;
  if (![301, 302, 303, 307, 308].includes(statusCode) || typeof location !== "string") return undefined;
  return URL.parse(location, url)?.href ?? "";
}

/** Throws a `FileProblem` if the address is not allowed. */
function readAddress(text: string, { owner, hosts, origins }: GuardedFetchOptions): Address {
  const url = URL.parse(text);
  const foreign = () => new FileProblem("foreign", `is not hosted by ${owner}`);
  if (url === null || url.username !== "" || url.password !== "") throw foreign();
  if (origins.includes(url.origin)) return { url, isListed: true };
  if (url.protocol !== "https:" || url.port !== "" || !hosts.some((host) => isBelow(url.hostname, host))) {
    throw foreign();
  }
  // Check an IP address here, because it needs no lookup that could check it.
  const address = url.hostname.replace(/^\[|\]$/g, "");
  if (isIP(address) !== 0 && !isPublicAddress(address)) throw toPrivateProblem();
  return { url, isListed: false };
}

function isBelow(hostname: string, host: string): boolean {
  return host.startsWith("*.") ? hostname.endsWith(host.slice(1)) : hostname === host;
}

function toPrivateProblem(): FileProblem {
  return new FileProblem("private", "is at a private network address, which is not allowed");
}

function findProblem(
  { statusCode, headers }: Pick<Dispatcher.ResponseData, "statusCode" | "headers">,
  owner: string,
  maxBytes: number,
  mayBePage: boolean,
): FileProblem | undefined {
  if (statusCode >= 300 && statusCode < 400) {
    const message = `could not be fetched: ${owner} redirected to another page, usually because the bot has no access`;
    return new FileProblem("redirect", message);
  }
  if (statusCode === 401 || statusCode === 403) {
    return new FileProblem("forbidden", `is not accessible to the bot: ${owner} responded with ${statusCode}`);
  }
  if (statusCode === 404 || statusCode === 410) {
    return new FileProblem("gone", `no longer exists: ${owner} responded with ${statusCode}`);
  }
  if (statusCode !== 200) {
    return new FileProblem("unavailable", `could not be fetched: ${owner} responded with ${statusCode}`);
  }
  if (!mayBePage && PAGE_TYPES.test(String(headers["content-type"] ?? "").trim())) {
    const message = `could not be fetched: ${owner} sent a web page instead, usually because the bot cannot read files there`;
    return new FileProblem("page", message);
  }
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding !== "identity") {
    return new FileProblem("encoded", `could not be fetched: ${owner} compressed it without being asked`);
  }
  // Count the bytes too, because the header can be wrong.
  return Number(headers["content-length"] ?? 0) > maxBytes ? toLargeProblem(maxBytes) : undefined;
}

async function* readBody(
  body: Dispatcher.ResponseData["body"],
  maxBytes: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  let sizeBytes = 0;
  try {
    for await (const chunk of body as AsyncIterable<Uint8Array>) {
      sizeBytes += chunk.byteLength;
      if (sizeBytes > maxBytes) throw toLargeProblem(maxBytes);
      yield chunk;
    }
  } catch (error) {
    signal.throwIfAborted();
    throw toProblem(error);
  } finally {
    body.destroy();
  }
}

function toLargeProblem(maxBytes: number): FileProblem {
  return new FileProblem("too-large", `is larger than ${toShownSize(maxBytes)}`);
}

const LATE = new Set(["UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT", "UND_ERR_CONNECT_TIMEOUT", "ETIMEDOUT"]);

function toProblem(error: unknown): FileProblem {
  if (error instanceof FileProblem) return error;
  const isLate =
    error instanceof Error && (error.name === "TimeoutError" || ("code" in error && LATE.has(String(error.code))));
  if (isLate) return new FileProblem("late", "took too long to arrive", { cause: error });
  return new FileProblem("unavailable", "could not be fetched: the connection failed", { cause: error });
}
