import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { sniffType } from "../../src/media/sniff.ts";

const utf8 = (text: string) => new TextEncoder().encode(text);

describe("sniffType", () => {
  for (const text of [
    "plain",
    "日本語 é 😀",
    "<svg xmlns='x'/>",
    "<?xml version='1.0'?><svg/>",
    "{\\rtf1 a}",
    "",
    "\x1b[1mlog",
  ]) {
    test(`sniffType recognises ${JSON.stringify(text)} as text`, async () => {
      await expect(sniffType(utf8(text))).resolves.toEqual({ kind: "text", mimeType: "text/plain" });
    });
  }

  test("sniffType recognises bytes with a byte order mark as text", async () => {
    const littleEndian = Buffer.from("\ufeffdéjà 日本", "utf16le");
    const bigEndian = Buffer.from(littleEndian).swap16();
    for (const bytes of [littleEndian, bigEndian, utf8("\ufeffdéjà 日本")]) {
      await expect(sniffType(bytes)).resolves.toEqual({ kind: "text", mimeType: "text/plain" });
    }
  });

  test("sniffType judges a long text by its beginning, even if that ends inside a character", async () => {
    const beginning = utf8(`a${"日".repeat(30_000)}`);
    const text = { kind: "text", mimeType: "text/plain" };
    await expect(sniffType(Buffer.concat([beginning, Uint8Array.of(0xff)]))).resolves.toEqual(text);
    await expect(sniffType(Buffer.concat([Uint8Array.of(0xff), beginning]))).resolves.toBeUndefined();
  });

  test("sniffType recognises no archives, other binaries or text in other encodings", async () => {
    const zip = Buffer.from("PK\x03\x04\x14\0\0\0\0\0", "latin1");
    const shiftJis = Uint8Array.of(0x93, 0xfa, 0x96, 0x7b);
    const gzip = Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0);
    for (const bytes of [zip, gzip, shiftJis, utf8("with\0nul"), Uint8Array.of(0xff, 0xfe, 0x41)]) {
      await expect(sniffType(bytes)).resolves.toBeUndefined();
    }
  });

  test("sniffType never rejects, whatever the bytes", async () => {
    const heads = ["", "\x89PNG\r\n\x1a\n", "GIF89a", "PK\x03\x04", "RIFF\0\0\0\0WEBP", "ID3", "\x1f\x8b", "OggS"];
    const bytes = fc.tuple(fc.constantFrom(...heads), fc.uint8Array({ maxLength: 200 }));
    await fc.assert(
      fc.asyncProperty(bytes, async ([head, tail]) => {
        await sniffType(Buffer.concat([Buffer.from(head, "latin1"), tail]));
      }),
    );
  });
});
