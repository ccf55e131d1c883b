import { createHash } from "node:crypto";
import type { ToolCall } from "../gateway/chunks.ts";
import type { SandboxChatRequest, SandboxMessage, SandboxTool } from "./chat-request.ts";
import { type Directions, lastParagraph } from "./directions.ts";
import { readPlaces, readZones } from "./schema-evidence.ts";
import { fillSchema } from "./schema-values.ts";
import { imageUrls, textOf } from "./tokens.ts";

/** Names of tools that draw. */
const DRAWS = /image|picture|draw/i;

/** Questions that need a tool without naming it: the words, and the names of tools that answer them. */
const NEEDS: readonly [RegExp, RegExp][] = [
  [/\bwhat(?:'s| is)? (?:the )?time\b|\bwhat(?:'s| is) the date\b|何時|今日は何日/i, /time|clock|date/i],
  [/\b(?:draw|paint)\b|\b(?:generate|make|create) (?:me )?an? (?:image|picture)\b|絵を描|描いて/i, DRAWS],
  [/\bweather\b|天気/i, /weather/i],
];

/** Words that change a picture that is there. */
const CHANGE =
  /^(?:and |but )?(?:now (?:all|as|at|by|from|in|make|on|under|with|without)|the same|make (?:it|them|the)|once more)\b|にして|に変えて|今度は/i;

/** Words that make the model call its tools again after every result: what a limit on rounds is tried with. */
const FOREVER = /\b(?:forever|again and again|over and over)\b/i;

/**
 * The calls made in answer to the last message; none when it answers in words. Tools are called on demand of
 * `tool_choice` or when named, together; "use A, then B" takes a round each.
 */
export function chooseCalls(request: SandboxChatRequest, { head }: Directions): ToolCall[] {
  const { tools, tool_choice: choice, messages } = request;
  if (!tools || choice === "none") return [];
  const rounds = countRounds(messages);
  const steps = head.split(/\b(?:and )?then\b/i);
  const words = FOREVER.test(head) ? head : (steps[rounds] ?? "");
  const chosen = rounds > 0 ? findNamed(tools, words) : findDemanded(tools, choice, words);
  const named = chosen.flatMap((tool) => toArguments(tool, words).map((values) => ({ tool, values })));
  const calls = named.length === 0 && rounds === 0 ? changePicture(request, words) : named;
  const allowed = request.parallel_tool_calls === false ? calls.slice(0, 1) : calls;
  return allowed.map(({ tool, values }, index) => ({
    id: toCallId(request, index),
    type: "function",
    function: { name: tool.function.name, arguments: JSON.stringify(values) },
  }));
}

/** Answers with the results of tools that have just been called, word for word. */
export function answerFromResults(messages: readonly SandboxMessage[]): string | undefined {
  if (messages.at(-1)?.role !== "tool") return undefined;
  const asked = messages.findLastIndex(({ role }) => role === "user");
  const names = new Map(messages.flatMap((message) => callsOf(message)).map((call) => [call.id, call.function.name]));
  const results = messages.slice(asked + 1).flatMap((message) => {
    if (message.role !== "tool") return [];
    return [describeResult(names.get(message.tool_call_id) ?? "the tool", textOf(message))];
  });
  return ["Here is what I found:", ...results].join("\n\n");
}

function describeResult(name: string, result: string): string {
  if (result.trim() === "") return `**${name}** returned nothing.`;
  if (!result.includes("\n")) return `**${name}**: ${result}`;
  const fence = "`".repeat(Math.max(3, ...Array.from(result.matchAll(/`+/g), ([run]) => run.length + 1)));
  return `**${name}**:\n\n${fence}\n${result}\n${fence}`;
}

/** Rounds of calls that were made since the user spoke last. */
function countRounds(messages: readonly SandboxMessage[]): number {
  const asked = messages.findLastIndex(({ role }) => role === "user");
  return messages.slice(asked + 1).filter((message) => callsOf(message).length > 0).length;
}

function findDemanded(tools: SandboxTool[], choice: SandboxChatRequest["tool_choice"], words: string): SandboxTool[] {
  if (choice && typeof choice === "object") return tools.filter((tool) => tool.function.name === choice.function.name);
  const named = findNamed(tools, words);
  return choice === "required" && named.length === 0 ? tools.slice(0, 1) : named;
}

/** The tools that the words name, in the order they are named; else those that answer a question in the words. */
function findNamed(tools: SandboxTool[], words: string): SandboxTool[] {
  const named = tools
    .map((tool) => ({ tool, at: words.search(toPattern(tool.function.name)) }))
    .filter(({ at }) => at !== -1);
  if (named.length > 0) return named.toSorted((a, b) => a.at - b.at).map(({ tool }) => tool);
  return NEEDS.filter(([need]) => need.test(words)).flatMap(([, names]) =>
    tools.filter((tool) => names.test(tool.function.name)).slice(0, 1),
  );
}

/** The call that draws the newest picture of the conversation anew; none where there is no picture to change. */
function changePicture(
  { tools, messages }: SandboxChatRequest,
  words: string,
): { tool: SandboxTool; values: unknown }[] {
  const tool = tools?.find(({ function: { name } }) => DRAWS.test(name));
  // A picture of the bot stands before the words where nothing was said in between.
  const change = lastParagraph(words).trim();
  if (tool === undefined || !CHANGE.test(change)) return [];
  const isThere = messages.some(
    (message) =>
      imageUrls(message).length > 0 || callsOf(message).some((call) => call.function.name === tool.function.name),
  );
  if (!isThere) return [];
  const schema = { ...tool.function.parameters, type: "object" as const };
  const values = fillSchema(schema, { words: change, text: change }) as Record<string, unknown>;
  const field = Object.keys(schema.properties ?? {}).find((name) => /reference/i.test(name));
  return [{ tool, values: { ...values, ...(field !== undefined && { [field]: ["last"] }) } }];
}

/** `current_time` is also named by "current time" and "current-time". */
function toPattern(name: string): RegExp {
  return new RegExp(`(?<![\\w-])${name.replace(/[_-]+/g, "[ _-]+")}(?![\\w-])`, "i");
}

/** Arguments for each call: one call for each place, where the words name several and the tool takes one. */
function toArguments(tool: SandboxTool, words: string): unknown[] {
  const schema = { ...tool.function.parameters, type: "object" as const };
  const source = { words, text: words.trim() };
  const first = fillSchema(schema, source) as Record<string, unknown>;
  for (const found of [readZones(words), readPlaces(words)]) {
    const field = Object.keys(first).find((key) => first[key] === found[0]);
    if (found.length > 1 && field !== undefined) return found.map((value) => ({ ...first, [field]: value }));
  }
  return [first];
}

function callsOf(message: SandboxMessage): ToolCall[] {
  return message.role === "assistant" ? (message.tool_calls ?? []) : [];
}

/** The same for the same request, different for every call in a conversation. */
function toCallId({ messages }: SandboxChatRequest, index: number): string {
  const hash = createHash("sha256")
    .update(`${index} ${JSON.stringify(messages)}`)
    .digest("hex");
  return `call_${hash.slice(0, 24)}`;
}
