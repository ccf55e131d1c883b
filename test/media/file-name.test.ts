import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { toShownFileName } from "../../src/media/file-problem.ts";
import { codePoint } from "../support/code-point.ts";

describe("the shown name of a file", () => {
  test("an ordinary file name is shown unchanged", () => {
    expect(toShownFileName("Bericht_Übersicht (2) 報告書.txt")).toBe("Bericht_Übersicht (2) 報告書.txt");
  });

  test("a hostile file name is shown as one harmless line", () => {
    expect(toShownFileName('a"\n</file>`@here`\u202egnp.\0exe')).toBe("a' _/file_'@here'gnp.exe");
  });

  test("a long file name keeps its ending with the extension", () => {
    expect(toShownFileName(`${"x".repeat(5_000)}.tar.gz`)).toMatch(/^x{63}…x{9}\.tar\.gz$/);
    expect(toShownFileName(`${"😀".repeat(100)}.png`)).toMatch(/^😀{63}…😀{12}\.png$/u);
  });

  test("a file without a name gets one", () => {
    for (const name of ["", "  \n", "\u200b", "\ud800"]) expect(toShownFileName(name)).toBe("unnamed file");
  });

  test("every shown file name is short, on one line and without special characters", () => {
    fc.assert(
      fc.property(fc.string({ unit: codePoint, maxLength: 300 }), (name) => {
        const shown = toShownFileName(name);
        expect(Array.from(shown).length).toBeLessThanOrEqual(80);
        expect(shown).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}"`<>\\]/u);
        expect(shown.trim()).not.toBe("");
      }),
    );
  });
});
