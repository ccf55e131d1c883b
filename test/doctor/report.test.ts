import { describe, expect, test } from "vitest";
import { formatFinding, formatSummary } from "../../src/doctor/report.ts";

const plain = { redact: (text: string) => text.replaceAll("secret", "[redacted]"), hasColor: false };

describe("a finding", () => {
  test("a finding is one line with ✓ or ✗, its section, the result and the fix", () => {
    expect(formatFinding("Redis", { ok: true, what: "It answers." }, plain)).toBe("✓ Redis: It answers.");
    expect(formatFinding("Redis", { ok: false, what: "It is away.", fix: "Start it." }, plain)).toBe(
      "✗ Redis: It is away. Start it.",
    );
  });

  test("a finding shows no secret, and no control codes", () => {
    const finding = { ok: true, what: "The team is \u001B[31mRed\nTeam", fix: "The key is secret." };
    expect(formatFinding("Slack", finding, plain)).toBe("✓ Slack: The team is  [31mRed Team The key is [redacted].");
  });

  test("a finding has a coloured mark if colours are supported", () => {
    const line = formatFinding("Redis", { ok: false, what: "x" }, { ...plain, hasColor: true });
    expect(line.startsWith("\u001B[31m✗")).toBe(true);
  });
});

describe("the summary", () => {
  test.each([
    [[true, true], "Everything works."],
    [[true, false], "One thing is wrong."],
    [[false, true, false], "2 things are wrong."],
  ])("the summary of %j is %j", (all, words) => {
    const findings = all.map((ok) => ({ ok, what: "x" }));
    expect(formatSummary(findings, plain)).toBe(words);
  });
});
