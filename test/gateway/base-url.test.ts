import { describe, expect, test } from "vitest";
import { readBaseUrl } from "../../src/gateway/base-url.ts";

describe("readBaseUrl", () => {
  test("takes slashes and the version off", () => {
    for (const end of ["", "/", "//", "/v1", "/v1/", "/v1//", "/v1beta", "/v1beta/"]) {
      expect(readBaseUrl(`https://gateway.example${end}`)).toBe("https://gateway.example");
      expect(readBaseUrl(`http://127.0.0.1:8787/proxy/ai${end}`)).toBe("http://127.0.0.1:8787/proxy/ai");
    }
  });

  test("keeps a path that only looks like a version", () => {
    expect(readBaseUrl("https://gateway.example/dev1")).toBe("https://gateway.example/dev1");
  });

  test("refuses what is no http(s) address", () => {
    for (const text of ["", "gateway.example", "ftp://gateway.example", "file:///etc/passwd"]) {
      expect(() => readBaseUrl(text)).toThrow("must be an http:// or https:// URL");
    }
  });

  test("refuses secrets and queries in the address, and does not repeat them", () => {
    for (const text of ["https://user:hunter2@gateway.example", "https://gateway.example/?key=hunter2"]) {
      expect(() => readBaseUrl(text)).toThrow(/^(?!.*hunter2).*must have no user, password, query or fragment/);
    }
  });
});
