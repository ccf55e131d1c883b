import type { SandboxMessage } from "./chat-request.ts";
import { textOf } from "./tokens.ts";

const OWN_NAME =
  /\b(?:my name is|call me|i am called)\s+([\p{L}][\p{L}\p{M}'-]*)|(?:私の名前は|わたしの名前は)\s*([^\s。、]+?)(?:です|だ|。|$)/iu;
/** People introduce themselves at the beginning. */
const MAX_SEARCHED_CHARS = 4000;
const ASKS_NAME =
  /\b(?:what(?:'s| is) my name|who am i|do you (?:know|remember) my name)\b|私の名前は(?:何|なに|なん)/i;
const ASKS_FIRST = /\bwhat did i (?:say|write|ask) first\b|\bmy first message\b/i;
const ASKS_BEFORE = /\bwhat did i (?:just )?(?:say|write|ask)\b|\bwhat have i said\b|さっき何|前に何/i;
const ASKS_YOURS = /\bwhat did you (?:just )?(?:say|write|answer)\b/i;
const ASKS_SYSTEM = /\b(?:your (?:instructions|system prompt|persona)|system prompt)\b/i;
const ASKS_PEOPLE = /\bwho (?:is|are) (?:here|in this (?:conversation|thread|channel))\b|\bwho said what\b/i;

/** Answers what can be answered from the conversation itself; undefined when the words ask for nothing of it. */
export function answerFromMemory(messages: readonly SandboxMessage[], text: string): string | undefined {
  if (ASKS_NAME.test(text)) return answerName(messages, text);
  if (ASKS_SYSTEM.test(text))
    return quote("My instructions are:", ofRole(messages, "system"), "I was given no instructions.");
  if (ASKS_FIRST.test(text))
    return quote("First you said:", earlier(messages).slice(0, 1), "This is your first message.");
  if (ASKS_BEFORE.test(text))
    return quote("Before that you said:", earlier(messages).slice(-1), "This is your first message.");
  if (ASKS_YOURS.test(text)) {
    return quote("I said:", ofRole(messages, "assistant").filter(Boolean).slice(-1), "I have said nothing yet.");
  }
  if (ASKS_PEOPLE.test(text)) return answerPeople(messages);
  const introduced = readOwnName(text);
  return introduced === undefined ? undefined : answerIntroduction(introduced, text);
}

/** The name of the person who wrote last: the one they gave, else that of their `name` field. */
export function nameOfSpeaker(messages: readonly SandboxMessage[]): string | undefined {
  const speaker = messages.findLast(({ role }) => role === "user")?.name ?? undefined;
  const own = messages.filter((message) => message.role === "user" && (message.name ?? undefined) === speaker);
  return own.map((message) => readOwnName(textOf(message))).findLast((name) => name !== undefined) ?? speaker;
}

export function isJapanese(text: string): boolean {
  return /[\p{Script=Hiragana}\p{Script=Katakana}]/u.test(text);
}

function answerName(messages: readonly SandboxMessage[], text: string): string {
  const name = nameOfSpeaker(messages);
  if (isJapanese(text)) return name === undefined ? "お名前はまだ伺っていません。" : `お名前は${name}さんです。`;
  return name === undefined ? "You have not told me your name yet." : `Your name is ${name}.`;
}

function answerIntroduction(name: string, text: string): string {
  return isJapanese(text)
    ? `${name}さん、はじめまして。覚えておきます。`
    : `Nice to meet you, ${name}. I will remember that.`;
}

function answerPeople(messages: readonly SandboxMessage[]): string {
  const lines = messages
    .filter(({ role }) => role === "user")
    .map((message) => `- ${message.name ?? "someone"}: ${firstLine(message)}`);
  return ["In this conversation I have heard:", lines.join("\n")].join("\n\n");
}

function readOwnName(text: string): string | undefined {
  if (ASKS_NAME.test(text)) return undefined;
  const match = OWN_NAME.exec(text.slice(0, MAX_SEARCHED_CHARS));
  return match?.[1] ?? match?.[2];
}

function earlier(messages: readonly SandboxMessage[]): string[] {
  return ofRole(messages, "user").slice(0, -1);
}

function ofRole(messages: readonly SandboxMessage[], role: SandboxMessage["role"]): string[] {
  return messages.filter((message) => message.role === role).map(textOf);
}

function firstLine(message: SandboxMessage): string {
  return textOf(message).split("\n", 1)[0]?.slice(0, 120) ?? "";
}

function quote(intro: string, texts: string[], nothing: string): string {
  if (texts.length === 0) return nothing;
  return [intro, ...texts.map((text) => text.replace(/^/gm, "> "))].join("\n\n");
}
