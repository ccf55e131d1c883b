import type { IncomingMessage } from "node:http";
import { describe, expect, test } from "vitest";
import { isLoopbackHost, nameSource } from "../../src/http/client-address.ts";

function source(remoteAddress: string, forwardedFor?: string): string {
  const headers = forwardedFor === undefined ? {} : { "x-forwarded-for": forwardedFor };
  return nameSource({ socket: { remoteAddress }, headers } as unknown as IncomingMessage);
}

describe("nameSource", () => {
  test("is the address that connects, in one form", () => {
    expect(source("8.8.8.8")).toBe("8.8.8.8");
    expect(source("::ffff:8.8.8.8")).toBe("8.8.8.8");
    expect(source("2a00:1450:4001:81b::200e")).toBe("2a00:1450:4001:81b::/64");
    expect(source("2a00:1450:4001:81b:ffff:1:2:3")).toBe("2a00:1450:4001:81b::/64");
    expect(source("::1")).toBe("0:0:0:0::/64");
    expect(source("fe80::1%eth0")).toBe("fe80:0:0:0::/64");
  });

  test("tells apart those who come through a proxy nearby, by what the proxy itself added", () => {
    expect(source("127.0.0.1", "8.8.8.8")).toBe("8.8.8.8 through 127.0.0.1");
    expect(source("::ffff:172.17.0.1", "1.1.1.1, 8.8.8.8")).toBe("8.8.8.8 through 172.17.0.1");
    expect(source("10.0.0.2", "[2a00:1450::1]:443")).toBe("2a00:1450:0:0::/64 through 10.0.0.2");
    expect(source("10.0.0.2", "8.8.8.8:1234")).toBe("8.8.8.8 through 10.0.0.2");
  });

  test("believes nothing that comes from a public address, nor what is no address", () => {
    expect(source("8.8.8.8", "127.0.0.1")).toBe("8.8.8.8");
    expect(source("127.0.0.1", "unknown")).toBe("127.0.0.1");
    expect(source("127.0.0.1", "8.8.8.8, ")).toBe("127.0.0.1");
  });
});

describe("isLoopbackHost", () => {
  test("knows this machine's own names", () => {
    for (const host of ["localhost", "LOCALHOST:80", "bot.localhost", "127.0.0.1", "127.1.2.3:80", "[::1]:3000"]) {
      expect(isLoopbackHost(host), host).toBe(true);
    }
    for (const host of ["", "127.999.1.1", "127.1", "localhost.example", "xlocalhost", "[::2]", "8.8.8.8", "[::1"]) {
      expect(isLoopbackHost(host), host).toBe(false);
    }
  });
});
