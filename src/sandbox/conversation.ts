import type { SandboxChatRequest } from "./chat-request.ts";
import type { Answer } from "./completion.ts";
import type { Directions } from "./directions.ts";
import type { Exchange } from "./exchange.ts";
import { answerFromMemory } from "./memory.ts";
import { describePictures } from "./pictures.ts";
import { writeProse } from "./prose.ts";
import { answerWithSample } from "./samples.ts";
import { fillSchema } from "./schema-values.ts";
import { answerSmallTalk } from "./small-talk.ts";
import { findSpokenSchema } from "./spoken-schema.ts";
import { answerFromResults, chooseCalls } from "./tool-calls.ts";

const MAX_COUNT = 10_000;

/**
 * The chat models' whole mind: the same request always gets the same answer. Tools first, then pictures, then the
 * first rule whose words are recognised. Throws a 400 for a picture that cannot be read.
 */
export async function converse(
  request: SandboxChatRequest,
  directions: Directions,
  exchange: Exchange,
): Promise<Answer> {
  // Every picture is read, also those of earlier messages: a link that has expired since is refused, as elsewhere.
  const seen = await describePictures(request.messages, directions.head, exchange);
  const toolCalls = chooseCalls(request, directions);
  if (toolCalls.length > 0) return { content: "", toolCalls };

  const content = answerFromResults(request.messages) ?? directions.echo ?? seen ?? answerInWords(request, directions);
  return { content: toFormat(request, content, directions.text), toolCalls: [] };
}

function answerInWords({ messages, model }: SandboxChatRequest, { text, head, files }: Directions): string {
  return (
    countTo(head) ??
    writeProse(head) ??
    answerWithSample(head) ??
    answerFromMemory(messages, head) ??
    nameFiles(files) ??
    // A suffix asks for a speed or a fault and is no part of the name.
    answerSmallTalk(messages, text, model.replace(/:.*$/, ""))
  );
}

function nameFiles(files: readonly string[]): string | undefined {
  if (files.length === 0) return undefined;
  return `I was given ${files.map((name) => `\`${name}\``).join(", ")} to read. A real model would know what to say about it.`;
}

/** One number per line: what is missing or doubled in a stream is seen at once. */
function countTo(text: string): string | undefined {
  const asked = /\bcount (?:up )?(?:from 1 )?to (\d{1,9})\b/i.exec(text)?.[1];
  if (asked === undefined) return undefined;
  return Array.from({ length: Math.min(Number(asked), MAX_COUNT) }, (_, index) => String(index + 1)).join("\n");
}

/** Puts an answer into the form the request wants. An answer that is JSON already (`say: {…}`) stays as it is. */
function toFormat(request: SandboxChatRequest, answer: string, words: string): string {
  const { response_format: format } = request;
  if (!format || format.type === "text" || isJson(answer)) return answer;
  const schema = format.type === "json_schema" ? format.json_schema.schema : format.schema;
  const wanted = schema ?? findSpokenSchema(request.messages);
  return JSON.stringify(wanted === undefined ? { answer } : fillSchema(wanted, { words, text: answer }));
}

function isJson(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null;
  } catch {
    return false;
  }
}
