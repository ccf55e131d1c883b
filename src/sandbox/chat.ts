import { createHash } from "node:crypto";
import { type ModelCard, readAccount, requireModel } from "./access.ts";
import { readChatRequest, type SandboxChatRequest } from "./chat-request.ts";
import { type Answer, toCompletion } from "./completion.ts";
import { readCutAnswer } from "./cut-answer.ts";
import { type Directions, type GivenFile, readDirections } from "./directions.ts";
import { toInvalidRequest } from "./errors.ts";
import { type Exchange, type Handler, meetFault, readAskedModel } from "./exchange.ts";
import { readJsonBody } from "./json-body.ts";
import { answerFromMemory } from "./memory.ts";
import { describePictures } from "./pictures.ts";
import { writeProse } from "./prose.ts";
import { answerWithSample } from "./samples.ts";
import { fillSchema } from "./schema-values.ts";
import { playScript, toStreamScript, toWholeScript } from "./script.ts";
import { applyToCompletion, applyToScript } from "./script-faults.ts";
import { answerSmallTalk } from "./small-talk.ts";
import { withoutNames } from "./speakers.ts";
import { findSpokenSchema, parseObject } from "./spoken-schema.ts";
import { thinkAbout } from "./thinking.ts";
import { imageUrls } from "./tokens.ts";
import { answerFromResults, chooseCalls } from "./tool-calls.ts";

/**
 * `POST /v1/chat/completions`. Checked in this order: key, content type, JSON, fields, model, what the model can do,
 * rate limit, fault. All of it comes before the head of the response, so that every refusal has its own status.
 */
export const completeChat: Handler = async (exchange) => {
  const { request, response, signal, context } = exchange;
  const account = readAccount(request);
  const body = readChatRequest(await readJsonBody(request));
  const asked = readAskedModel(body.model, request, "model");
  const model = requireModel(account, asked.id, "chat");
  requireAbilities(model, body);
  context.countRequest(account.key, model.id);

  const cut = readCutAnswer(body.messages);
  const heard = { ...body, messages: [...withoutNames(cut?.before ?? body.messages)] };
  const directions = readDirections(heard.messages);
  const fingerprint = createHash("sha256").update(JSON.stringify(body.messages)).digest("hex");
  const fault = meetFault(asked.fault ?? directions.fault, model.id, fingerprint, context);

  const dialect = directions.dialect ?? (isEffort(body.reasoning_effort) ? "reasoning_content" : undefined);
  const thinking = dialect && thinkAbout(directions.text, dialect);
  const whole = await converse(heard, directions, exchange);
  const answer = { ...whole, content: cut?.toRest(whole.content) ?? whole.content, thinking };
  const tokensPerSecond = asked.tokensPerSecond ?? directions.tokensPerSecond;
  const completion = toCompletion(model.id, body, answer);
  const isStream = body.stream === true && fault?.name !== "json";
  const said = fault === undefined ? completion : applyToCompletion(completion, fault);
  const script = isStream
    ? toStreamScript(said, body.stream_options?.include_usage === true)
    : toWholeScript(said, tokensPerSecond ?? Number.POSITIVE_INFINITY);

  context.log.debug(
    { id: said.id, model: model.id, fault: fault?.name, finish: said.finishReason },
    "sandbox completion",
  );
  const played = fault === undefined ? script : applyToScript(script, fault);
  const { prompt_tokens, completion_tokens } = said.usage;
  const { served } = context;
  let sent = 0;
  served.requests += 1;
  served.promptTokens += prompt_tokens;
  try {
    const speed = tokensPerSecond ?? context.tokensPerSecond;
    await playScript(played, response, speed, signal, (tokens) => (sent += tokens));
    sent = completion_tokens;
  } catch (error) {
    served.left += 1;
    throw error;
  } finally {
    served.completionTokens += Math.min(sent, completion_tokens);
  }
};

/** Effort that is worth a thought. */
function isEffort(effort: string | null | undefined): boolean {
  return effort !== undefined && effort !== null && !/^(none|minimal)$/i.test(effort);
}

function requireAbilities({ id, hasTools, hasVision }: ModelCard, { tools, messages }: SandboxChatRequest): void {
  if (tools?.length && !hasTools) {
    throw toInvalidRequest(
      `The model ${id} cannot call tools. Leave tools away or use sandbox-chat.`,
      "unsupported_feature",
      "tools",
    );
  }
  const index = messages.findIndex((message) => imageUrls(message).length > 0);
  if (index !== -1 && !hasVision) {
    const param = `messages[${index}].content`;
    throw toInvalidRequest(
      `The model ${id} cannot see pictures. Send text only or use sandbox-chat.`,
      "unsupported_feature",
      param,
    );
  }
}

const MAX_COUNT = 10_000;

/**
 * The chat models' whole mind: the same request always gets the same answer. Tools first, then pictures, then the
 * first rule whose words are recognised. Throws a 400 for a picture that cannot be read.
 */
async function converse(request: SandboxChatRequest, directions: Directions, exchange: Exchange): Promise<Answer> {
  // Every picture is read, also those of earlier messages: a link that has expired since is refused, as elsewhere.
  const seen = await describePictures(request.messages, directions.head, exchange);
  const toolCalls = chooseCalls(request, directions);
  if (toolCalls.length > 0) return { content: "", toolCalls };

  const { isPractice } = exchange.context;
  const content =
    answerFromResults(request.messages) ??
    directions.echo ??
    seen ??
    countTo(directions.head) ??
    makeUp(request, directions, isPractice) ??
    answerInWords(request, directions);
  return { content: toFormat(request, content, directions.text), toolCalls: [] };
}

const PRACTICE_NOTE = "_This is a practice model that makes up its text. Connect a gateway to ask a real one._";

/** Text that could be taken for a real model's. */
function makeUp({ messages, response_format }: SandboxChatRequest, { head }: Directions, isPractice: boolean) {
  const content = writeProse(head) ?? answerWithSample(head);
  const isFirst = messages.every(({ role }) => role !== "assistant");
  return content !== undefined && isPractice && isFirst && !response_format
    ? `${content}\n\n${PRACTICE_NOTE}`
    : content;
}

function answerInWords({ messages, model }: SandboxChatRequest, { text, head, files }: Directions): string {
  return (
    answerFromMemory(messages, head) ??
    nameFiles(files) ??
    // A suffix asks for a speed or a fault and is no part of the name.
    answerSmallTalk(messages, text, model.replace(/:.*$/, ""))
  );
}

function nameFiles(files: readonly GivenFile[]): string | undefined {
  if (files.length === 0) return undefined;
  const names = files.map(({ name }) => `\`${name}\``).join(", ");
  const lines = files.filter(({ firstLine }) => firstLine !== "").map(({ firstLine }) => `> ${firstLine}`);
  const begin = files.length === 1 ? "It begins with" : "They begin with";
  return [
    `I was given ${names} to read. ${lines.length === 0 ? "There is nothing in it." : `${begin}:`}`,
    ...lines,
    "A real model would know what to say about it.",
  ].join("\n\n");
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
  if (!format || format.type === "text" || parseObject(answer) !== undefined) return answer;
  const schema = format.type === "json_schema" ? format.json_schema.schema : format.schema;
  const wanted = schema ?? findSpokenSchema(request.messages);
  return JSON.stringify(wanted === undefined ? { answer } : fillSchema(wanted, { words, text: answer }));
}
