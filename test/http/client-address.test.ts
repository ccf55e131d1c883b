import type { IncomingMessage } from "node:http";
import { describe, expect, test } from "vitest";
import { isFromHere, isLoopbackHost, nameSource } from "../../src/http/client-address.ts";

function source(remoteAddress: string, forwardedFor?: string): string {
  const headers = forwardedFor === undefined ? {} : { "x-forwarded-for": forwardedFor };
  return nameSource({ socket: { remoteAddress }, headers } as unknown as IncomingMessage);
}

describe("nameSource", () => {
  test("nameSource returns the connecting IPv4 address, or the /64 network of an IPv6 address", () => {
    expect(source("8.8.8.8")).toBe("8.8.8.8");
    expect(source("::ffff:8.8.8.8")).toBe("8.8.8.8");
    expect(source("2a00:1450:4001:81b::200e")).toBe("2a00:1450:4001:81b::/64");
    expect(source("2a00:1450:4001:81b:ffff:1:2:3")).toBe("2a00:1450:4001:81b::/64");
    expect(source("::1")).toBe("0:0:0:0::/64");
    expect(source("fe80::1%eth0")).toBe("fe80:0:0:0::/64");
  });

  test("nameSource distinguishes clients of a local proxy by the entry that the proxy added", () => {
    expect(source("127.0.0.1", "8.8.8.8")).toBe("8.8.8.8 through 127.0.0.1");
    expect(source("::ffff:172.17.0.1", "1.1.1.1, 8.8.8.8")).toBe("8.8.8.8 through 172.17.0.1");
    expect(source("10.0.0.2", "[2a00:1450::1]:443")).toBe("2a00:1450:0:0::/64 through 10.0.0.2");
    expect(source("10.0.0.2", "8.8.8.8:1234")).toBe("8.8.8.8 through 10.0.0.2");
  });

  test("nameSource ignores headers from public addresses, and values that are not addresses", () => {
    expect(source("8.8.8.8", "127.0.0.1")).toBe("8.8.8.8");
    expect(source("127.0.0.1", "unknown")).toBe("127.0.0.1");
    expect(source("127.0.0.1", "8.8.8.8, ")).toBe("127.0.0.1");
  });
});

describe("isFromHere", () => {
  const ask = (peer: string, headers: Record<string, string> = {}, httpVersion = "1.1") =>
    isFromHere({
      socket: { remoteAddress: peer },
      headers: { host: "localhost:3000", ...headers },
      httpVersion,
    } as unknown as IncomingMessage);

  test("isFromHere is true only for loopback connections, even if IPv6 shows an IPv4 address", () => {
    for (const peer of ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"]) expect(ask(peer), peer).toBe(true);
    for (const peer of ["", "10.0.0.1", "::ffff:10.0.0.1", "fe80::1", "172.17.0.1", "::127.0.0.1"]) {
      expect(ask(peer), peer).toBe(false);
    }
    expect(ask("127.0.0.1", { host: "bot.example.com" })).toBe(false);
  });

  test.each([
    ..."forwarded x-forwarded x-forwarded-for x-forwarded-host x-forwarded-proto x-forwarded-port".split(" "),
    ..."forwarded-for x-original-forwarded-for x-vercel-forwarded-for via x-via cdn-loop".split(" "),
    ..."true-client-ip x-client-ip client-ip x-real-ip x-cluster-client-ip wl-proxy-client-ip".split(" "),
    ..."fastly-client-ip fly-client-ip cf-connecting-ip cf-connecting-ipv6 x-azure-clientip".split(" "),
    ..."x-remote-addr x-proxyuser-ip x-appengine-user-ip x-envoy-external-address".split(" "),
    ..."cloudfront-viewer-address cf-ray x-amzn-trace-id x-amz-cf-id x-scheme x-request-id x-request-start".split(" "),
    ..."x-remote-user tailscale-user-login x-arr-ssl".split(" "),
  ])("isFromHere is false for a proxied request with %s, even if it is empty", (name) => {
    expect(ask("127.0.0.1", { [name]: "127.0.0.1" })).toBe(false);
    expect(ask("127.0.0.1", { [name]: "" })).toBe(false);
  });

  test("isFromHere is false over HTTP/1.0, which nginx uses by default", () => {
    expect(ask("127.0.0.1", {}, "1.0")).toBe(false);
  });

  test("isFromHere is true with every header that a browser sends", () => {
    const headers = {
      accept: "*/*",
      "accept-language": "en",
      authorization: "Basic eDp5",
      connection: "keep-alive",
      cookie: "a=b",
      dnt: "1",
      origin: "http://localhost:3000",
      referer: "http://localhost:3000/",
      "sec-ch-ua-platform": "Linux",
      "sec-fetch-site": "same-origin",
      "sec-fetch-user": "?1",
      "user-agent": "Mozilla/5.0",
      "x-admin-password": "x",
    };
    expect(ask("127.0.0.1", headers)).toBe(true);
  });
});

describe("isLoopbackHost", () => {
  test("isLoopbackHost knows the names of this machine", () => {
    for (const host of ["localhost", "LOCALHOST:80", "bot.localhost", "127.0.0.1", "127.1.2.3:80", "[::1]:3000"]) {
      expect(isLoopbackHost(host), host).toBe(true);
    }
    for (const host of ["", "127.999.1.1", "127.1", "localhost.example", "xlocalhost", "[::2]", "8.8.8.8", "[::1"]) {
      expect(isLoopbackHost(host), host).toBe(false);
    }
  });
});
