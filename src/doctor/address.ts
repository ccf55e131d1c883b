import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { Config } from "../config/config.ts";
import type { Finding } from "../port/finding.ts";
import type { NamedAddress } from "./platforms.ts";

const ANSWER_MS = 10_000;
/** These error codes do not prove a mistake, because in some networks a machine cannot reach its own public address. */
const INCONCLUSIVE = new Set(["UND_ERR_CONNECT_TIMEOUT", "ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH", "TimeoutError"]);

/** The server that uses the port: the running service, or a server that this check starts. */
interface Host {
  /** Undefined for the running service. */
  probe: string | undefined;
  close(): Promise<void>;
}

/** Checks that the port is free and that `PUBLIC_URL` leads to it. */
export async function checkAddress(
  config: Config,
  events: readonly NamedAddress[],
  signal: AbortSignal,
): Promise<Finding[]> {
  const [finding, host] = await occupy(config, signal);
  try {
    return host === undefined ? [finding] : [finding, ...(await checkPublic(config, host, events, signal))];
  } finally {
    await host?.close();
  }
}

async function occupy(config: Config, signal: AbortSignal): Promise<[Finding, Host | undefined]> {
  const { host, port } = config;
  const probe = randomUUID();
  const server = createServer((request, response) => {
    request.resume();
    response.setHeader("content-type", "application/json").end(JSON.stringify({ status: "ok", probe }));
  });
  try {
    server.listen(port, host);
    await once(server, "listening", { signal });
    return [
      { ok: true, what: `Port ${port} on ${host} is free.` },
      { probe, close: () => end(server) },
    ];
  } catch (error) {
    signal.throwIfAborted();
    const code = codeOf(error);
    if (code !== "EADDRINUSE") return [describeListening(code, config), undefined];
    if (await isService(config, signal)) {
      return [
        { ok: true, what: `Palaver is already running on port ${port}.` },
        { probe: undefined, close: async () => {} },
      ];
    }
    const fix = "Set PORT to another one, or stop that program.";
    return [{ ok: false, what: `Port ${port} on ${host} is in use by another program.`, fix }, undefined];
  }
}

function describeListening(code: string, { host, port }: Config): Finding {
  const what = `Nothing can listen on port ${port} of ${host} (${code}).`;
  const fix = code === "EACCES" ? "Set PORT to one above 1023." : "Set HOST to an address of this machine.";
  return { ok: false, what, fix };
}

async function isService({ host, port }: Config, signal: AbortSignal): Promise<boolean> {
  const name = { "0.0.0.0": "127.0.0.1", "::": "[::1]" }[host] ?? (host.includes(":") ? `[${host}]` : host);
  const answer = await ask(`http://${name}:${port}/healthz`, {}, signal);
  return answer.body.includes('"status":"ok"');
}

async function checkPublic(
  { publicUrl, port }: Config,
  host: Host,
  events: readonly NamedAddress[],
  signal: AbortSignal,
): Promise<Finding[]> {
  if (publicUrl === undefined) {
    return events.map(({ platform, path }) => ({
      ok: true,
      what: `PUBLIC_URL is not set, so this cannot check whether ${platform} reaches POST ${path}.`,
    }));
  }
  if (port === 0)
    return [{ ok: true, what: "PUBLIC_URL cannot be checked: with PORT=0 each start uses a different port." }];
  const expected = host.probe ?? '"status":"ok"';
  const health = judge(`${publicUrl}/healthz`, await ask(`${publicUrl}/healthz`, {}, signal), expected, port);
  if (!health.ok || health.isInconclusive) return [health.finding];
  const tried = events.map(async ({ path, toRequest, expected }) => {
    const url = publicUrl + path;
    return judge(url, await ask(url, toRequest(), signal), host.probe ?? expected, port).finding;
  });
  return [health.finding, ...(await Promise.all(tried))];
}

interface Answer {
  status: number;
  body: string;
  /** Why the request failed; "" if a response arrived. */
  error: string;
}

async function ask(url: string, request: RequestInit, signal: AbortSignal): Promise<Answer> {
  try {
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]);
    const response = await fetch(url, { ...request, redirect: "manual", signal: bounded });
    return { status: response.status, body: (await response.text()).slice(0, 10_000), error: "" };
  } catch (error) {
    signal.throwIfAborted();
    return { status: 0, body: "", error: codeOf(error) };
  }
}

function judge(url: string, { status, body, error }: Answer, expected: string, port: number) {
  const fix = `Point PUBLIC_URL, or the proxy behind it, at port ${port} of this machine.`;
  const to = (ok: boolean, what: string, isInconclusive = false) => ({
    ok,
    isInconclusive,
    finding: ok ? { ok, what } : { ok, what, fix },
  });
  if (INCONCLUSIVE.has(error)) {
    return to(
      true,
      `${url} could not be reached from here (${error}). While Palaver is running, try it with curl from outside.`,
      true,
    );
  }
  if (error !== "") return to(false, `${url} cannot be reached (${error}).`);
  if (status === 200 && body.includes(expected)) return to(true, `${url} leads here.`);
  if (status >= 300 && status < 400) return to(false, `${url} redirects elsewhere (${status}).`);
  return to(false, `Something else answers at ${url} (status ${status}).`);
}

/** Returns the innermost code, because `fetch` wraps the original error. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.cause instanceof Error) return codeOf(error.cause);
  return "code" in error && typeof error.code === "string" ? error.code : error.name;
}

async function end(server: Server): Promise<void> {
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await closed;
}
