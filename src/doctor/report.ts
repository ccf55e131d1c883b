import { styleText } from "node:util";
import type { Finding } from "../port/finding.ts";

export interface Section {
  title: string;
  run(signal: AbortSignal): Promise<Finding[]>;
}

export interface ReportOptions {
  redact(text: string): string;
  hasColor: boolean;
}

/** Formats a finding as one line: a symbol, the section, what was found, how to fix it, and a link. */
export function formatFinding(
  title: string,
  { ok, what, fix, link }: Finding,
  { redact, hasColor }: ReportOptions,
): string {
  const mark = ok ? paint("green", "✓", hasColor) : paint("red", "✗", hasColor);
  // Remove control characters, because names from outside can contain anything.
  const parts = [what, fix, link && `${link.label}: ${link.url}`].filter((part) => part !== undefined);
  const text = redact(parts.join(" ")).replace(/\p{Cc}+/gu, " ");
  return `${mark} ${title}: ${text}`;
}

export function formatSummary(findings: readonly Finding[], { hasColor }: Pick<ReportOptions, "hasColor">): string {
  const wrong = findings.filter(({ ok }) => !ok).length;
  if (wrong === 0) return paint("green", "Everything works.", hasColor);
  return paint("red", wrong === 1 ? "One thing is wrong." : `${wrong} things are wrong.`, hasColor);
}

function paint(color: "green" | "red", text: string, hasColor: boolean): string {
  return hasColor ? styleText(color, text, { validateStream: false }) : text;
}
