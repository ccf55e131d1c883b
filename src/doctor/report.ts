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

/** One finding as one line: a mark, the part it is of, what was found, and what to do. */
export function formatFinding(title: string, { ok, what, fix }: Finding, { redact, hasColor }: ReportOptions): string {
  const mark = ok ? paint("green", "✓", hasColor) : paint("red", "✗", hasColor);
  // Names that others chose may hold anything, also what a terminal obeys.
  const text = redact([what, fix].filter((part) => part !== undefined).join(" ")).replace(/\p{Cc}+/gu, " ");
  return `${mark} ${title}: ${text}`;
}

export function formatSummary(findings: readonly Finding[], { hasColor }: Pick<ReportOptions, "hasColor">): string {
  const wrong = findings.filter(({ ok }) => !ok).length;
  if (wrong === 0) return paint("green", "Everything that was tried works.", hasColor);
  return paint("red", wrong === 1 ? "One thing is wrong." : `${wrong} things are wrong.`, hasColor);
}

function paint(color: "green" | "red", text: string, hasColor: boolean): string {
  return hasColor ? styleText(color, text, { validateStream: false }) : text;
}
