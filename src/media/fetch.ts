import { isIP } from "node:net";
import { Agent, type Dispatcher, request } from "undici";
import { FileProblem, toShownSize } from "./file-problem.ts";
import { createPublicLookup, isPublicAddress, type Resolve } from "./public-address.ts";

export interface GuardedFetchOptions {
  /** The platform whose files these are, as people say it: "Slack". */
  owner: string;
  /** Fetched from over https at its usual port: a name, or `*.` and a name for everything below it. */
  hosts: readonly string[];
  /** Fetched from as they are, over http and at private addresses too: `http://127.0.0.1:8080`. */
  origins: readonly string[];
  /** Resolves names; the system's own way when absent. */
  resolve?: Resolve;
  /** Longest time for the whole file; absent: `TOTAL_TIMEOUT_MS`. */
  totalTimeoutMs?: number;
}

export interface FileRequest {
  /** Sent to the host of the address and nowhere else. */
  headers?: Readonly<Record<string, string>>;
  maxBytes: number;
  /** The file may itself be a web page. Otherwise one that comes is taken for a page to log in at. */
  mayBePage?: boolean;
  /** Other addresses that are followed, each of a listed place and without the headers; none when absent. */
  maxRedirects?: number;
}

export interface GuardedFetch {
  /**
   * The bytes of a file, from the listed places only. The address that a host resolves to is checked when it is
   * connected to. Rejects, and breaks off the bytes, with a `FileProblem`, or with the signal's reason when it aborts.
   */
  open(url: string, options: FileRequest, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
}

const CONNECT_TIMEOUT_MS = 10_000;
const HEADERS_TIMEOUT_MS = 15_000;
const IDLE_TIMEOUT_MS = 20_000;
const TOTAL_TIMEOUT_MS = 60_000;
const PAGE_TYPES = /^(text\/html|application\/xhtml\+xml)\b/i;

export function createGuardedFetch(options: GuardedFetchOptions): GuardedFetch {
  const { owner } = options;
  // One connection for each file: they are rare, and none is left open behind.
  const guarded = new Agent({
    pipelining: 0,
    connect: { timeout: CONNECT_TIMEOUT_MS, lookup: createPublicLookup(toPrivateProblem, options.resolve) },
  });
  const plain = new Agent({ pipelining: 0, connect: { timeout: CONNECT_TIMEOUT_MS } });

  return {
    async open(text, { headers = {}, maxBytes, mayBePage = false, maxRedirects = 0 }, signal) {
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
        // It may break off before anybody reads it, or when nobody does any more.
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
        const problem = findProblem(answer, owner, maxBytes, mayBePage);
        if (problem === undefined) return readBody(answer.body, maxBytes, signal);
        // Not read to its end: it may have none.
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
  /** True for a configured origin, which is fetched from as it is. */
  isListed: boolean;
}

/** The address that an answer names instead of the bytes. */
function findTarget({ statusCode, headers }: Dispatcher.ResponseData, url: URL): string | undefined {
  const { location } = headers;
  if (![301, 302, 303, 307, 308].includes(statusCode) || typeof location !== "string") return undefined;
  return URL.parse(location, url)?.href ?? "";
}

/** Throws a `FileProblem` for an address elsewhere. */
function readAddress(text: string, { owner, hosts, origins }: GuardedFetchOptions): Address {
  const url = URL.parse(text);
  const foreign = () => new FileProblem("foreign", `is not kept by ${owner}`);
  if (url === null || url.username !== "" || url.password !== "") throw foreign();
  if (origins.includes(url.origin)) return { url, isListed: true };
  if (url.protocol !== "https:" || url.port !== "" || !hosts.some((host) => isBelow(url.hostname, host))) {
    throw foreign();
  }
  // A literal address is connected to without being looked up.
  const address = url.hostname.replace(/^\[|\]$/g, "");
  if (isIP(address) !== 0 && !isPublicAddress(address)) throw toPrivateProblem();
  return { url, isListed: false };
}

function isBelow(hostname: string, host: string): boolean {
  return host.startsWith("*.") ? hostname.endsWith(host.slice(1)) : hostname === host;
}

function toPrivateProblem(): FileProblem {
  return new FileProblem("private", "is kept at an address inside a private network, where nothing is fetched from");
}

/** Finds the problem that an answer's head alone shows. */
function findProblem(
  { statusCode, headers }: Pick<Dispatcher.ResponseData, "statusCode" | "headers">,
  owner: string,
  maxBytes: number,
  mayBePage: boolean,
): FileProblem | undefined {
  if (statusCode >= 300 && statusCode < 400) {
    const message = `was answered by ${owner} with the address of another page, as happens when the bot may not read it`;
    return new FileProblem("redirect", message);
  }
  if (statusCode === 401 || statusCode === 403) {
    return new FileProblem("forbidden", `may not be read by the bot: ${owner} answered with ${statusCode}`);
  }
  if (statusCode === 404 || statusCode === 410) {
    return new FileProblem("gone", `is not there any more: ${owner} answered with ${statusCode}`);
  }
  if (statusCode !== 200) {
    return new FileProblem("unavailable", `could not be fetched: ${owner} answered with ${statusCode}`);
  }
  if (!mayBePage && PAGE_TYPES.test(String(headers["content-type"] ?? "").trim())) {
    const message = `came as a web page instead of its bytes, as happens when the bot may not read files in ${owner}`;
    return new FileProblem("page", message);
  }
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding !== "identity") {
    return new FileProblem("encoded", `was compressed on its way by ${owner}, which was not asked for`);
  }
  // A length can lie, so the bytes are counted as well.
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
