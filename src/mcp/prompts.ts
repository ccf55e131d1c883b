import type { GetPromptResult, Prompt } from "@modelcontextprotocol/client";
import type { ChatMessage } from "../gateway/chunks.ts";
import { truncate } from "../text/truncate.ts";
import type { McpConnection } from "./connection.ts";
import { describeBlock } from "./result.ts";

/** `!server:prompt …`; with a slash it is the same. */
const PROMPT = /^[!/]([a-z0-9][a-z0-9_-]*):(\S+)(?:\s+([\s\S]*))?$/i;
const MAX_MESSAGES = 20;
const MAX_CHARS = 20_000;

/** A prompt as a message names it. */
export interface PromptCall {
  server: string;
  name: string;
  /** Everything behind it. */
  text: string;
}

/** A text of people's that a server keeps, and what goes into it. */
export interface PromptOffer {
  name: string;
  arguments: ReadonlyArray<{ name: string; isRequired: boolean }>;
}

/** Undefined where a message names no prompt. Pure. */
export function readPromptCall(text: string): PromptCall | undefined {
  const [, server, name, rest = ""] = PROMPT.exec(text.trim()) ?? [];
  return server === undefined || name === undefined ? undefined : { server, name, text: rest.trim() };
}

export function toPromptOffer({ name, arguments: wanted = [] }: Prompt): PromptOffer {
  return { name, arguments: wanted.map(({ name, required }) => ({ name, isRequired: required === true })) };
}

/** `!server:prompt <needed> [optional]` */
export function describePrompt(server: string, { name, arguments: wanted }: PromptOffer): string {
  const parts = wanted.map((one) => (one.isRequired ? `<${one.name}>` : `[${one.name}]`));
  return [`!${server}:${name}`, ...parts].join(" ");
}

/**
 * Gets a prompt's messages, as words of the person who named it. Resolves to a sentence for them when it is not to be
 * had. Rejects only with the signal's reason.
 */
export async function readPrompt(
  connection: McpConnection,
  call: PromptCall,
  signal: AbortSignal,
): Promise<ChatMessage[] | string> {
  const { name: server } = connection.config;
  const offers = connection.offer.prompts.map(toPromptOffer);
  const offer = offers.find(({ name }) => name.toLowerCase() === call.name.toLowerCase());
  if (offer === undefined) {
    const known = offers.slice(0, MAX_MESSAGES).map((one) => `\`${describePrompt(server, one)}\``);
    return `\`${server}\` has no prompt of that name. ${known.length === 0 ? "It has none at all" : `It has: ${known.join(", ")}`}.`;
  }
  const given = readArguments(call.text, offer.arguments);
  const missing = offer.arguments.filter(({ name, isRequired }) => isRequired && given[name] === undefined);
  if (missing.length > 0) {
    const names = missing.map(({ name }) => `\`${name}\``).join(", ");
    return `That needs ${names} as well: \`${describePrompt(server, offer)}\`, each as a word, "in quotes", or as \`name=value\`.`;
  }
  try {
    return toMessages(await connection.getPrompt(offer.name, given, signal));
  } catch {
    signal.throwIfAborted();
    return `\`${server}\` did not give that prompt. Try again in a minute.`;
  }
}

/** `name=value` wherever the name is known, and the other words in their order; the last of them takes the rest. Pure. */
function readArguments(text: string, wanted: PromptOffer["arguments"]): Record<string, string> {
  // Inherits nothing: an argument may be called `constructor`.
  const given: Record<string, string> = Object.create(null);
  const words: string[] = [];
  for (const [word, name = "", quoted, plain] of text.matchAll(/(?:([\w-]+)=)?(?:["“]([^"“”]*)["”]|(\S+))/g)) {
    const known = wanted.find((one) => one.name === name);
    if (known !== undefined) given[known.name] = quoted ?? plain ?? "";
    else words.push(name === "" ? (quoted ?? plain ?? "") : word);
  }
  const open = wanted.filter(({ name }) => given[name] === undefined);
  for (const [index, { name }] of open.entries()) {
    const isLast = index === open.length - 1;
    const value = isLast ? words.slice(index).join(" ") : words[index];
    if (value) given[name] = value;
  }
  return given;
}

function toMessages({ messages }: GetPromptResult): ChatMessage[] {
  let room = MAX_CHARS;
  return messages.slice(0, MAX_MESSAGES).flatMap(({ role, content }) => {
    const text = truncate(describeBlock(content, []), room).toWellFormed();
    room -= text.length;
    return text.trim() === "" ? [] : [{ role, content: text }];
  });
}
