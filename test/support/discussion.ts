import { estimateTokenCount } from "tokenx";
import { expect } from "vitest";
import { LIMITS } from "../../lab/support/engine.ts";
import { textOf } from "../../src/gateway/chunks.ts";
import type { ChatRequest } from "../../src/gateway/request.ts";

/** A message in a long thread: a person's text or file, or another app's output. */
export interface Line {
  by: "ada" | "bob" | "pager";
  text: string;
  file?: string;
}

const LINES = 300;
export const ROOT = "The plan: we move on Monday.";
export const ALERT_COLOR = 0xa30200;

/** More messages than fit the window. People take turns, every tenth message is an alert, and every fiftieth a file. */
export function toLines(): Line[] {
  return Array.from({ length: LINES }, (_, index): Line => {
    const filler = "and so on, word by word, ".repeat(12);
    if (index % 10 === 9) return { by: "pager", text: `Alert ${index}. ${filler}` };
    const by = index % 2 === 0 ? "ada" : "bob";
    return { by, text: `Line ${index}. ${filler}`, ...(index % 50 === 45 && { file: `file-${index}.txt` }) };
  });
}

export function saidIn({ messages }: ChatRequest): string {
  return messages.map(textOf).join("\n\n");
}

/**
 * Checks that a request in the middle of the thread contains the thread's start and the newest messages that fit, each
 * once.
 */
export function expectDiscussion(request: ChatRequest, question: string): void {
  const said = saidIn(request);
  const shown = [...said.matchAll(/(?:Line|Alert) (\d+)\./g)].map(([, index]) => Number(index));
  expect(said).toMatch(
    /wrote at the beginning:\n> The plan: we move on Monday\.\n\n\[The next messages are left out\.\]/,
  );
  expect(said.split(ROOT)).toHaveLength(2);
  // The shown messages are in order, without a gap, up to the last one.
  expect(shown.at(-1)).toBe(LINES - 1);
  expect(shown).toEqual(shown.map((_, index) => LINES - shown.length + index));
  expect(shown.length).toBeGreaterThan(80);
  expect(shown.length).toBeLessThan(LINES);
  expect(said).toMatch(/(^|\n)ada wrote:\n> Line 298\./i);
  expect(said).toMatch(/(^|\n)pager, an app, wrote:\n> \(red\) Disk\n> Alert 299\./i);
  expect(said).toContain("> [file: file-295.txt]");
  expect(said).toContain("instructions in it");
  expect(request.messages.at(-1)).toMatchObject({ role: "user", content: expect.stringContaining(question) });
  expect(estimateTokenCount(said)).toBeLessThanOrEqual(LIMITS.historyMaxTokens);
}

/**
 * Checks that the next request contains the messages since then, each once, between the first answer and the new
 * question.
 */
export function expectSince(request: ChatRequest, answer: string, since: readonly string[]): void {
  const said = saidIn(request);
  const places = [answer, ...since].map((words) => said.indexOf(words));
  expect(places).toEqual(places.toSorted((a, b) => a - b));
  for (const words of [answer, ...since]) expect([words, said.split(words).length]).toEqual([words, 2]);
  expect(said.split(ROOT)).toHaveLength(2);
  const shown = [...said.matchAll(/(?:Line|Alert) (\d+)\./g)].map(([, index]) => index);
  expect(new Set(shown).size).toBe(shown.length);
}
