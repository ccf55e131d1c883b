import type { IncomingMessage } from "node:http";
import { isIP, isIPv4, isIPv6 } from "node:net";
import { isPublicAddress } from "../media/public-address.ts";

/**
 * Matches headers in which proxies name themselves or the caller: `Forwarded`, `X-Forwarded-*`, `Via`, `CDN-Loop`,
 * `CF-Ray`, `Tailscale-User-Login`, and vendors' names for the caller's address (`True-Client-IP`, `X-Real-IP`,
 * `X-Azure-SocketIP`, `X-Remote-Addr`, …). Browsers don't send such headers.
 */
const FORWARDING =
  /forwarded|^(?:x-)?via$|^cdn-loop$|^(?:cf|tailscale|fastly|fly|ngrok|x-(?:amzn?|azure|arr|original|envoy|proxy|remote|scheme|request|correlation))(?:-|$)|(?:client|real|remote|connecting|source|user|origin|socket|cluster|peer|viewer)-?(?:ip|addr|address|host|port)(?:v?[46])?$/;

/**
 * Names the source of a request, to count requests per source. Proxy headers count only from a private network, and
 * only in addition to the address, so a client cannot pretend to be another one. For IPv6, the source is the /64
 * network.
 */
export function nameSource({ socket, headers }: Pick<IncomingMessage, "socket" | "headers">): string {
  const peer = toAddress(socket.remoteAddress ?? "");
  const last =
    String(headers["x-forwarded-for"] ?? "")
      .split(",")
      .at(-1) ?? "";
  const client = toAddress(
    last
      .trim()
      .replace(/^\[(.*)\](?::\d+)?$/, "$1")
      .replace(/^([\d.]+):\d+$/, "$1"),
  );
  if (isPublicAddress(peer) || isIP(client) === 0) return toNetwork(peer);
  return `${toNetwork(client)} through ${toNetwork(peer)}`;
}

/**
 * True for a program on this machine. False if the request passed through a proxy or names another host. Misses a local
 * proxy that adds no header, sends a local host name and uses HTTP/1.1. (It detects nginx, whose default is HTTP/1.0.)
 */
export function isFromHere({
  socket,
  headers,
  httpVersion,
}: Pick<IncomingMessage, "socket" | "headers" | "httpVersion">): boolean {
  const peer = toAddress(socket.remoteAddress ?? "");
  const isLocal = peer === "::1" || (isIPv4(peer) && peer.startsWith("127."));
  const isForwarded = httpVersion === "1.0" || Object.keys(headers).some((name) => FORWARDING.test(name));
  return isLocal && isLoopbackHost(headers.host ?? "") && !isForwarded;
}

/** True if a `Host` header names this machine, with or without a port. */
export function isLoopbackHost(host: string): boolean {
  const name = host.startsWith("[") ? host.slice(0, host.indexOf("]") + 1) : (host.split(":")[0] ?? "");
  if (name === "[::1]" || (isIPv4(name) && name.startsWith("127."))) return true;
  return /^(?:.+\.)?localhost$/i.test(name);
}

/** Removes the prefix of an IPv4 address on an IPv6 socket. */
function toAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, "");
}

function toNetwork(address: string): string {
  if (!isIPv6(address)) return address;
  const [head = "", tail] = address.toLowerCase().split("%", 1)[0]?.split("::") ?? [];
  const groups = head.split(":").filter((group) => group !== "");
  const after = (tail ?? "").split(":").filter((group) => group !== "");
  const zeros = tail === undefined ? 0 : 8 - groups.length - after.length;
  const full = [...groups, ...Array<string>(Math.max(0, zeros)).fill("0"), ...after];
  return `${full
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":")}::/64`;
}
