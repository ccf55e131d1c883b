import { createRanking } from "./ranking.ts";
import type { Tool } from "./tool.ts";

/** Gateways accept at most 128 tools, and models choose worse from a long list. */
const MAX_TOOLS = 64;
/** Maximum size of all tool descriptions and schemas in a request, in characters. */
const MAX_CHARS = 60_000;

export interface Wanted {
  /** The question for which the tools are chosen. */
  question: string;
  /** Names of the tools that were already called in the conversation. */
  called: ReadonlySet<string>;
}

/**
 * Chooses the tools for a request. If not all fit, prefers tools that were called before, then the best matches. Pure.
 */
export function chooseTools(own: readonly Tool[], outside: readonly Tool[], { question, called }: Wanted): Tool[] {
  let chars = sum(own);
  if (own.length + outside.length <= MAX_TOOLS && chars + sum(outside) <= MAX_CHARS) return [...own, ...outside];
  const ranking = createRanking<{ text: string; at: number; tool: Tool }>(question);
  // Equal matches keep the list's order.
  ranking.add(outside.map((tool, index) => ({ text: toText(tool), at: -index, tool })));
  const ranked = [
    ...outside.filter(({ name }) => called.has(name)),
    ...ranking.best(outside.length).map(({ tool }) => tool),
    ...outside,
  ];
  const chosen = new Set<Tool>();
  for (const tool of ranked) {
    if (own.length + chosen.size >= MAX_TOOLS) break;
    if (chosen.has(tool) || chars + sizeOf(tool) > MAX_CHARS) continue;
    chosen.add(tool);
    chars += sizeOf(tool);
  }
  return [...own, ...outside.filter((tool) => chosen.has(tool))];
}

function toText({ name, description }: Tool): string {
  return `${name.replaceAll(/[_-]+/g, " ")} ${description}`;
}

const sizes = new WeakMap<Tool, number>();

function sizeOf(tool: Tool): number {
  const known = sizes.get(tool);
  if (known !== undefined) return known;
  const size = tool.name.length + tool.description.length + JSON.stringify(tool.parameters).length;
  sizes.set(tool, size);
  return size;
}

function sum(tools: readonly Tool[]): number {
  return tools.reduce((total, tool) => total + sizeOf(tool), 0);
}
