import { createHash } from "node:crypto";
import type { ToolCall } from "../gateway/chunks.ts";
import type { SandboxChatRequest, SandboxMessage, SandboxTool } from "./chat-request.ts";
import type { Answer } from "./completion.ts";
import { lastParagraph } from "./conversation.ts";
import type { Directions } from "./directions.ts";
import type { Exchange } from "./exchange.ts";
import { describePictures } from "./pictures.ts";
import { fillSchema, findSchema, parseObject } from "./schema-values.ts";
import { imageUrls, textOf } from "./tokens.ts";

const MAX_COUNT = 10_000;
const MAX_WORDS = 100_000;
const MAX_QUOTED_CHARS = 200;

/**
 * The model behind the sandbox. It understands a few words, shows what an answer can contain, and says that it is for
 * practice. The same request always gets the same answer. Throws a 400 for an image that it cannot read.
 */
export async function answer(request: SandboxChatRequest, directions: Directions, exchange: Exchange): Promise<Answer> {
  // Loads the images of earlier messages too, because real gateways also refuse an expired link.
  const seen = await describePictures(request.messages, exchange);
  const toolCalls = chooseCalls(request, directions);
  if (toolCalls.length > 0) return { content: "", toolCalls };
  const { head, echo } = directions;
  const asked = textOf(request.messages.findLast(({ role }) => role === "user") ?? { role: "user", content: "" });
  const content =
    answerFromResults(request.messages) ??
    echo ??
    seen ??
    countTo(head) ??
    writeText(request, head, exchange.context.isPractice) ??
    introduce(request.model, head, asked) ??
    quoteMessages(request.messages, asked);
  return { content: toFormat(request, content, head), toolCalls: [] };
}

const DRAWS = /image|picture|draw/i;

/** Questions that need a tool without naming it, with patterns of the tools that can answer them. */
const NEEDS: readonly [RegExp, RegExp][] = [
  [/\bwhat(?:'s| is)? the time\b|\bwhat time is it\b/i, /time|clock/i],
  [/\b(?:draw|paint)\b/i, DRAWS],
];

/** Matches words that change the newest image. */
const CHANGE = /^(?:now (?:all|as|at|by|from|in|make|on|under|with|without)|the same|make (?:it|them|the))\b/i;

/** Matches words that make the model call its tools again after every result, to test the limit on rounds. */
const FOREVER = /\b(?:forever|over and over)\b/i;

/**
 * Chooses the calls that answer the last message; empty if it needs no tool. The model calls all tools that the message
 * names, or the tool that `tool_choice` demands. "use A, then B" takes two rounds.
 */
export function chooseCalls(request: SandboxChatRequest, { head }: Directions): ToolCall[] {
  const { tools, tool_choice: choice, messages } = request;
  if (!tools || choice === "none") return [];
  const rounds = sinceAsked(messages).filter((message) => callsOf(message).length > 0).length;
  const words = FOREVER.test(head) ? head : (head.split(/\b(?:and )?then\b/i)[rounds] ?? "");
  const named = findNamed(tools, words);
  const demanded =
    choice && typeof choice === "object"
      ? tools.filter((tool) => tool.function.name === choice.function.name)
      : choice === "required" && named.length === 0
        ? tools.slice(0, 1)
        : named;
  const calls = (rounds > 0 ? named : demanded).map((tool) => toCall(tool, words));
  const changes = calls.length === 0 && rounds === 0 ? changePicture(tools, messages, words) : calls;
  const allowed = request.parallel_tool_calls === false ? changes.slice(0, 1) : changes;
  return allowed.map((call, index) => ({ id: toCallId(messages, index), type: "function", function: call }));
}

/** Finds the tools that the words name, in that order, or else the tools that answer a question in the words. */
function findNamed(tools: SandboxTool[], words: string): SandboxTool[] {
  const named = tools
    .map((tool) => ({ tool, at: words.search(toPattern(tool.function.name)) }))
    .filter(({ at }) => at !== -1);
  if (named.length > 0) return named.toSorted((a, b) => a.at - b.at).map(({ tool }) => tool);
  return NEEDS.filter(([need]) => need.test(words)).flatMap(([, names]) =>
    tools.filter((tool) => names.test(tool.function.name)).slice(0, 1),
  );
}

/** "current time" and "current-time" also name `current_time`. */
function toPattern(name: string): RegExp {
  return new RegExp(`(?<![\\w-])${name.replace(/[_-]+/g, "[ _-]+")}(?![\\w-])`, "i");
}

/** Creates the call that changes the newest image; none if the conversation has no image. */
function changePicture(tools: SandboxTool[], messages: readonly SandboxMessage[], words: string) {
  const tool = tools.find(({ function: { name } }) => DRAWS.test(name));
  // Read only the last paragraph, because a bot can mention its own image in a paragraph before the user's words.
  const change = lastParagraph(words).trim();
  if (tool === undefined || !CHANGE.test(change)) return [];
  const { name, parameters } = tool.function;
  const hasPicture = messages.some(
    (message) => imageUrls(message).length > 0 || callsOf(message).some((call) => call.function.name === name),
  );
  const field = Object.keys(parameters?.properties ?? {}).find((key) => /reference/i.test(key));
  return hasPicture ? [toCall(tool, change, field === undefined ? {} : { [field]: ["last"] })] : [];
}

function toCall({ function: { name, parameters } }: SandboxTool, words: string, more = {}): ToolCall["function"] {
  const filled = fillSchema({ ...parameters, type: "object" }, { words, text: words.trim() });
  return { name, arguments: JSON.stringify({ ...Object(filled), ...more }) };
}

/** Creates the same id for equal requests, and a different one for each call of a conversation. */
function toCallId(messages: readonly SandboxMessage[], index: number): string {
  const hash = createHash("sha256").update(`${index} ${JSON.stringify(messages)}`);
  return `call_${hash.digest("hex").slice(0, 24)}`;
}

function callsOf(message: SandboxMessage): ToolCall[] {
  return message.role === "assistant" ? (message.tool_calls ?? []) : [];
}

function sinceAsked(messages: readonly SandboxMessage[]): readonly SandboxMessage[] {
  return messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1);
}

/** Repeats the results of the latest calls. Undefined if the last message is not a result. */
export function answerFromResults(messages: readonly SandboxMessage[]): string | undefined {
  if (messages.at(-1)?.role !== "tool") return undefined;
  const names = new Map(messages.flatMap(callsOf).map((call) => [call.id, call.function.name]));
  const results = sinceAsked(messages).flatMap((message) =>
    message.role === "tool" ? [describeResult(names.get(message.tool_call_id) ?? "the tool", textOf(message))] : [],
  );
  return ["Here is what I found:", ...results].join("\n\n");
}

function describeResult(name: string, result: string): string {
  if (result.trim() === "") return `**${name}** returned nothing.`;
  if (!result.includes("\n")) return `**${name}**: ${result}`;
  const fence = "`".repeat(Math.max(3, ...Array.from(result.matchAll(/`+/g), ([run]) => run.length + 1)));
  return `**${name}**:\n\n${fence}\n${result}\n${fence}`;
}

/** Writes one number per line, so that a missing or repeated piece of a stream is easy to see. */
function countTo(head: string): string | undefined {
  const asked = /\bcount (?:up )?(?:from 1 )?to (\d{1,9})\b/i.exec(head)?.[1];
  if (asked === undefined) return undefined;
  return Array.from({ length: Math.min(Number(asked), MAX_COUNT) }, (_, index) => String(index + 1)).join("\n");
}

const SUBJECTS = ["The harbour", "A patient keeper", "Every old map", "The north wind", "Our small archive"];
const VERBS = ["keeps", "**follows**", "remembers", "repairs", "measures", "carries", "counts"];
const OBJECTS = ["the slow tide", "a ledger of names", "the lamps along the pier", "what the fog hides"];
const SENTENCES_PER_PARAGRAPH = 6;

const CODE = "```python\ndef mean(tides):\n    return sum(tides) / len(tides)\n```";
const TABLE = [
  "| # | Harbour | Tide | Direction |",
  "|--:|:--|--:|:--|",
  "| 1 | Valparaíso | 1.4 m | **falling** |",
  "| 2 | 長崎 | 2.1 m | rising |",
].join("\n");
const JAPANESE = "私は練習用のモデルです。港の朝はとても静かです。「急がなくていい」と彼女は言いました。";
/** The words that request a block of code, a table and so on. Kana request Japanese. */
const BLOCKS: readonly [RegExp, string][] = [
  [/\bcode\b|\bpython\b/i, CODE],
  [/\btables?\b/i, TABLE],
  [/\bjapanese\b|[\p{Script=Hiragana}\p{Script=Katakana}]/iu, JAPANESE],
];
const NOTE = "_This is a practice model that makes up its text. Connect a gateway to ask a real one._";

/** Answers "write 300 words about tea with code, a table and Japanese", or any part of that. */
function writeText({ messages, response_format }: SandboxChatRequest, head: string, isPractice: boolean) {
  const blocks = BLOCKS.flatMap(([asked, block]) => (asked.test(head) ? [block] : []));
  const isMore = /^\W*(?:go on|continue)\b/i.test(head);
  const asked = /\b([\d,]{1,9})[- ]words?\b(?! per second|\/s)/i.exec(head)?.[1];
  const words = asked ?? (isMore || /\b(?:write|tell) (?:me )?(?:an?|some)\b/i.test(head) ? "60" : undefined);
  if (words === undefined && blocks.length === 0) return undefined;
  const topic = /\babout (?:an? |the )?((?:(?! with\b)[^.,;!?\n]){1,60})/i.exec(head)?.[1] ?? "the harbour";
  const paragraphs = words === undefined ? [] : writeParagraphs(Number(words.replaceAll(",", "")));
  // Say that this is practice in the first answer, because a user could think that the text comes from a real model.
  const isNoted = isPractice && !response_format && messages.every(({ role }) => role !== "assistant");
  const heading = isMore || words === undefined ? [] : [`# About ${topic.trim()}`];
  return [...heading, ...paragraphs, ...blocks, ...(isNoted ? [NOTE] : [])].join("\n\n");
}

/** Writes whole sentences up to the number of words. Every third paragraph is a list. */
function writeParagraphs(words: number): string[] {
  const sentences: string[] = [];
  for (let left = Math.min(MAX_WORDS, words); left > 0; left -= sentences.at(-1)?.split(" ").length ?? left) {
    const at = sentences.length;
    sentences.push(`${[SUBJECTS, VERBS, OBJECTS].map((list) => list[at % list.length]).join(" ")}.`);
  }
  return Array.from({ length: Math.ceil(sentences.length / SENTENCES_PER_PARAGRAPH) }, (_, index) => {
    const part = sentences.slice(index * SENTENCES_PER_PARAGRAPH, (index + 1) * SENTENCES_PER_PARAGRAPH);
    return index % 3 === 2 ? part.map((sentence) => `- ${sentence}`).join("\n") : part.join(" ");
  });
}

const ASKS_WHO =
  /\bwhat can you\b|\b(?:who|what) are you\b|\byour name\b|\bhelp\b|^\W*(?:hello|hi|hey|good (?:morning|afternoon|evening))\b/i;

function introduce(model: string, head: string, asked: string): string | undefined {
  if (!ASKS_WHO.test(head) && asked.trim() !== "") return undefined;
  // Leave out the name's suffixes, because they only request a speed or a fault.
  return `Hello! I am **${model.replace(/:.*$/, "")}**, a practice model inside this program. I need no account and no key, and nothing leaves this machine. I understand little, but I can show what the bot does:

- \`write 300 words with code, a table and Japanese\` (add \`slowly\`, or \`at 20 words per second\`)
- \`count to 50\`, or \`say: …\`, which I repeat exactly
- attach a picture, and I name its size and main colour
- \`what time is it in Tokyo?\`, or the name of any other tool, and I use it
- \`draw a red boat\`, then \`now at night\`
- \`sandbox faults\` lists what I can break on purpose

To talk to a real model, press *Connect a model* on an empty page, or set \`GATEWAY_BASE_URL\`, \`GATEWAY_API_KEY\` and \`CHAT_MODEL\`.`;
}

/** The default answer. It quotes the first message and the previous one, to show that the conversation arrived. */
function quoteMessages(messages: readonly SandboxMessage[], asked: string): string {
  const earlier = messages.filter(({ role }) => role === "user").slice(0, -1);
  const quotes = new Set([...earlier.slice(0, 1), ...earlier.slice(-1)].map((message) => quote(textOf(message))));
  return [
    `You wrote:\n\n${quote(asked)}`,
    ...(quotes.size === 0 ? [] : ["Earlier in this conversation:", ...quotes]),
    "I am only a practice model and have no better answer. Ask me `what can you do?` to see what to try.",
  ].join("\n\n");
}

function quote(text: string): string {
  const points = Array.from(text.trim());
  const shown = points.length > MAX_QUOTED_CHARS ? `${points.slice(0, MAX_QUOTED_CHARS).join("")}…` : points.join("");
  return shown.replace(/^/gm, "> ");
}

/** Puts an answer into the requested format. Leaves an answer that is already JSON unchanged. */
function toFormat({ response_format: format, messages }: SandboxChatRequest, content: string, words: string): string {
  if (!format || format.type === "text" || parseObject(content) !== undefined) return content;
  const schema = (format.type === "json_schema" ? format.json_schema.schema : format.schema) ?? findSchema(messages);
  return JSON.stringify(schema === undefined ? { answer: content } : fillSchema(schema, { words, text: content }));
}
