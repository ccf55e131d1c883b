import type { GetPromptResult, Prompt } from "@modelcontextprotocol/client";
import type { ChatMessage } from "../gateway/chunks.ts";
import { truncate } from "../text/truncate.ts";
import type { McpConnection } from "./connection.ts";
import { describeBlock } from "./result.ts";

/** Matches `!server:prompt …` and `/server:prompt …`. */
const PROMPT = /^[!/]([a-z0-9][a-z0-9_-]*):(\S+)(?:\s+([\s\S]*))?$/i;
const MAX_MESSAGES = 20;
const MAX_CHARS = 20_000;

export interface PromptCall {
  server: string;
  name: string;
  text: string;
}

export interface PromptOffer {
  name: string;
  arguments: ReadonlyArray<{ name: string; isRequired: boolean }>;
}

/** Parses a message; undefined if it names no prompt. Pure. */
export function readPromptCall(text: string): PromptCall | undefined {
  const [, server, name, rest = ""] = PROMPT.exec(text.trim()) ?? [];
  return server === undefined || name === undefined ? undefined : { server, name, text: rest.trim() };
}

export function toPromptOffer({ name, arguments: wanted = [] }: Prompt): PromptOffer {
  return { name, arguments: wanted.map(({ name, required }) => ({ name, isRequired: required === true })) };
}

/** Returns `!server:prompt <needed> [optional]`. */
export function describePrompt(server: string, { name, arguments: wanted }: PromptOffer): string {
  const parts = wanted.map((one) => (one.isRequired ? `<${one.name}>` : `[${one.name}]`));
  return [`!${server}:${name}`, ...parts].join(" ");
}

/**
 * Gets a prompt's messages, which count as the asker's own text. If the prompt is unavailable, resolves to a sentence
 * for the asker. Rejects only with the signal's reason.
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
    return `\`${server}\` has no prompt with that name. ${known.length === 0 ? "It has no prompts" : `It has: ${known.join(", ")}`}.`;
  }
  const given = readArguments(call.text, offer.arguments);
  const missing = offer.arguments.filter(({ name, isRequired }) => isRequired && given[name] === undefined);
  if (missing.length > 0) {
    const names = missing.map(({ name }) => `\`${name}\``).join(", ");
    return `That also needs ${names}: \`${describePrompt(server, offer)}\`. Write each as a word, "in quotes", or as \`name=value\`.`;
  }
  try {
    return toMessages(await connection.getPrompt(offer.name, given, signal));
  } catch {
    signal.throwIfAborted();
    return `\`${server}\` did not return that prompt. Try again in a minute.`;
  }
}

/**
 * Parses `name=value` for known names. Other words fill the remaining arguments in order, and the last argument gets
 * all remaining words. Pure.
 */
function readArguments(text: string, wanted: PromptOffer["arguments"]): Record<string, string> {
  // Has no prototype, because an argument can have the name `constructor`.
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
