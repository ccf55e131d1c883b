import type { ReplyAddress } from "../port/events.ts";
import { quoteName } from "../text/quote-name.ts";
import { type Command, postNotice } from "./command.ts";

/** A server whose tools are offered in a place. */
export interface ToolServer {
  name: string;
  /** Why it cannot be used; undefined when it can. */
  problem: string | undefined;
  tools: ReadonlyArray<{ name: string; approval?: unknown }>;
}

/** Longest list of names, so that platforms take it as one message. */
const MAX_LIST_CHARS = 1_500;

/** `/tools`: what can be used here, and which of it asks first. */
export function createToolsCommand(
  own: readonly string[],
  serversOf: (place: ReplyAddress) => readonly ToolServer[],
): Command {
  return {
    name: "tools",
    description: "Lists the tools I can use here.",
    async run(event, sink, signal) {
      const lines = [`My own: ${own.map(quoteName).join(", ")}.`, ...serversOf(event.reply).map(describeServer)];
      await postNotice(sink, event, cut(lines).join("\n"), signal);
    },
  };
}

function describeServer({ name, problem, tools }: ToolServer): string {
  if (problem !== undefined) return `${quoteName(name)} cannot be used now: ${problem}.`;
  const names = tools.map(
    (tool) => quoteName(tool.name.slice(name.length + 2)) + (tool.approval ? " (asks first)" : ""),
  );
  return `${quoteName(name)}: ${names.join(", ") || "nothing"}.`;
}

function cut(lines: readonly string[]): string[] {
  let room = MAX_LIST_CHARS;
  return lines.map((line) => {
    const shown = line.length <= room ? line : `${line.slice(0, Math.max(0, room - 1))}…`;
    room -= shown.length;
    return shown;
  });
}
