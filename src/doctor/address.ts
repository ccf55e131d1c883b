import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { Config } from "../config/config.ts";
import type { Finding } from "../port/finding.ts";

const ANSWER_MS = 10_000;
/** Here nothing is known to be wrong: the way out may not lead back in. */
const UNTOLD = new Set(["UND_ERR_CONNECT_TIMEOUT", "ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH", "TimeoutError"]);

/** Who answers at the port: a server of our own for this check, or the service, which runs already. */
interface Host {
  /** Undefined: the service. */
  probe: string | undefined;
  close(): Promise<void>;
}

/** Where a platform sends its events, below `PUBLIC_URL`, and a request of the kind by which it tries that address itself. */
export interface EventsAddress {
  /** As people call the platform. */
  platform: string;
  path: string;
  toRequest(): RequestInit;
  /** Part of the service's answer to that request. */
  expected: string;
}

/** Checks that the port is free, and that `PUBLIC_URL` leads to it. */
export async function checkAddress(
  config: Config,
  eventsAddress: EventsAddress | undefined,
  signal: AbortSignal,
): Promise<Finding[]> {
  const [finding, host] = await occupy(config, signal);
  try {
    return host === undefined ? [finding] : [finding, ...(await checkPublic(config, host, eventsAddress, signal))];
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
        { ok: true, what: `Palaver runs at port ${port} already.` },
        { probe: undefined, close: async () => {} },
      ];
    }
    const fix = "Set PORT to another one, or end that program.";
    return [{ ok: false, what: `Port ${port} on ${host} is taken by another program.`, fix }, undefined];
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
  events: EventsAddress | undefined,
  signal: AbortSignal,
): Promise<Finding[]> {
  if (publicUrl === undefined) {
    const what = `PUBLIC_URL is not set, so whether ${events?.platform} reaches POST ${events?.path} cannot be told.`;
    return events === undefined ? [] : [{ ok: true, what }];
  }
  if (port === 0) return [{ ok: true, what: "PUBLIC_URL cannot be tried: with PORT=0 the port is another each time." }];
  const expected = host.probe ?? '"status":"ok"';
  const health = judge(`${publicUrl}/healthz`, await ask(`${publicUrl}/healthz`, {}, signal), expected, port);
  if (events === undefined || !health.ok || health.isUntold) return [health.finding];
  const url = publicUrl + events.path;
  const answer = await ask(url, events.toRequest(), signal);
  return [health.finding, judge(url, answer, host.probe ?? events.expected, port).finding];
}

interface Answer {
  status: number;
  body: string;
  /** Why there is no answer; "" when there is one. */
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
  const fix = `Let PUBLIC_URL, or the proxy behind it, lead to port ${port} of this machine.`;
  const to = (ok: boolean, what: string, isUntold = false) => ({
    ok,
    isUntold,
    finding: ok ? { ok, what } : { ok, what, fix },
  });
  if (UNTOLD.has(error)) {
    return to(true, `${url} could not be tried from here (${error}); from outside, curl it while Palaver runs.`, true);
  }
  if (error !== "") return to(false, `${url} cannot be reached (${error}).`);
  if (status === 200 && body.includes(expected)) return to(true, `${url} leads here.`);
  if (status >= 300 && status < 400) return to(false, `${url} redirects elsewhere (${status}).`);
  return to(false, `At ${url} something else answers (status ${status}).`);
}

/** The innermost code there is: `fetch` wraps what went wrong. */
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
