import { createHmac } from "node:crypto";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createRelayTokens } from "../../src/media/relay-token.ts";

const KEY = "k".repeat(32);
const OTHER = "o".repeat(32);
const tokens = createRelayTokens([KEY]);

describe("createRelayTokens", () => {
  test("a relay path names the file, its type and its expiry", () => {
    const { id, path } = tokens.create("image/jpeg", 1_000);
    expect(path).toMatch(/^\/relay\/v1\/[\w-]{72}\/picture\.jpg$/);
    expect(tokens.verify(path, 999)).toEqual({ id, mimeType: "image/jpeg", expiresAt: 1_000 });
  });

  test("no two relay paths are equal", () => {
    const paths = Array.from({ length: 50 }, () => tokens.create("image/png", 1_000).path);
    expect(new Set(paths).size).toBe(50);
  });

  test("every key verifies and the first key signs, so that a key can be replaced", () => {
    const { path } = tokens.create("image/png", 1_000);
    expect(createRelayTokens([OTHER, KEY]).verify(path, 0)).toBeDefined();
    expect(createRelayTokens([OTHER]).verify(path, 0)).toBeUndefined();
    const { path: next } = createRelayTokens([OTHER, KEY]).create("image/png", 1_000);
    expect(createRelayTokens([OTHER]).verify(next, 0)).toBeDefined();
    expect(tokens.verify(next, 0)).toBeUndefined();
  });

  test("a signed path is refused for another purpose, another type or a longer life", () => {
    const { path } = tokens.create("image/png", 1_000);
    const [, , , token = ""] = path.split("/");
    const head = Buffer.from(token, "base64url").subarray(0, 22);
    const sealed = (bytes: Buffer, purpose: string, type = "image/png") => {
      const mac = createHmac("sha256", KEY).update(`${purpose}\n${type}\n`).update(bytes).digest();
      return `/relay/v1/${Buffer.concat([bytes, mac]).toString("base64url")}/picture.png`;
    };
    expect(tokens.verify(sealed(head, "palaver relay v1"), 0)).toBeDefined();
    expect(tokens.verify(sealed(head, "palaver download v1"), 0)).toBeUndefined();
    expect(tokens.verify(sealed(head, "palaver relay v1", "image/webp"), 0)).toBeUndefined();
    expect(tokens.verify(path.replace(".png", ".gif"), 0)).toBeUndefined();
    const longer = Buffer.from(token, "base64url");
    longer.writeUIntBE(2_000, 0, 6);
    expect(tokens.verify(path.replace(token, longer.toString("base64url")), 0)).toBeUndefined();
  });

  test("a path with any changed character is refused", () => {
    const { path } = tokens.create("image/png", 1_000);
    const change = fc.record({ at: fc.nat(path.length - 1), by: fc.string({ unit: "grapheme", maxLength: 2 }) });
    fc.assert(
      fc.property(change, ({ at, by }) => {
        const changed = path.slice(0, at) + by + path.slice(at + 1);
        expect(tokens.verify(changed, 0) === undefined).toBe(changed !== path);
      }),
      { numRuns: 500 },
    );
  });

  test("another text that decodes to the same bytes is refused", () => {
    const { path } = tokens.create("image/png", 1_000);
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const end = path.length - "/picture.png".length - 1;
    const twins = Array.from(alphabet).map((letter) => path.slice(0, end) + letter + path.slice(end + 1));
    expect(twins.filter((twin) => tokens.verify(twin, 0) !== undefined)).toEqual([path]);
  });
});
