import type { RESTGetAPIGatewayBotResult } from "discord.js";
import type { Finding } from "../../../src/port/finding.ts";

const HELLO_MS = 10_000;
const HELLO = 10;
/** A bot that is started over and over uses these up, and its token is changed by Discord when they are gone. */
const FEW_SESSIONS = 50;

/** Looks whether the gateway can be reached and how many sessions may still be begun. Begins none. */
export async function checkGateway(
  { url, shards, session_start_limit: limit }: RESTGetAPIGatewayBotResult,
  signal: AbortSignal,
): Promise<Finding[]> {
  const hasHello = await waitForHello(`${url}?v=10&encoding=json`, signal);
  signal.throwIfAborted();
  const reach: Finding = hasHello
    ? { ok: true, what: `The gateway answers; Discord recommends ${shards} shard${shards === 1 ? "" : "s"}.` }
    : {
        ok: false,
        what: `The gateway ${new URL(url).host} cannot be reached.`,
        fix: "Let this machine open WebSockets to it: a proxy or a firewall may be in the way.",
      };
  const minutes = Math.ceil(limit.reset_after / 60_000);
  const left = `${limit.remaining} of ${limit.total} starts are left for the next ${minutes} minutes.`;
  if (limit.remaining > FEW_SESSIONS) return [reach, { ok: true, what: left }];
  return [reach, { ok: limit.remaining > shards, what: left, fix: "Find out why the bot is started so often." }];
}

function waitForHello(url: string, signal: AbortSignal): Promise<boolean> {
  const late = AbortSignal.any([signal, AbortSignal.timeout(HELLO_MS)]);
  const socket = new WebSocket(url);
  return new Promise<boolean>((resolve) => {
    late.addEventListener("abort", () => resolve(false), { once: true });
    socket.addEventListener("error", () => resolve(false));
    socket.addEventListener("close", () => resolve(false));
    socket.addEventListener("message", ({ data }) => resolve(isHello(data)));
  }).finally(() => socket.close());
}

function isHello(data: unknown): boolean {
  try {
    return (JSON.parse(String(data)) as { op?: unknown }).op === HELLO;
  } catch {
    return false;
  }
}
