import { createHash } from "node:crypto";
import { type ModelCard, readAccount, requireModel } from "./access.ts";
import { readChatRequest, type SandboxChatRequest } from "./chat-request.ts";
import { toCompletion } from "./completion.ts";
import { readCutAnswer, withoutNames } from "./conversation.ts";
import { readDirections } from "./directions.ts";
import { toInvalidRequest } from "./errors.ts";
import type { Handler } from "./exchange.ts";
import { meetFault, readAskedModel } from "./faults.ts";
import { readJsonBody } from "./json-body.ts";
import { answer } from "./practice-model.ts";
import { playScript, toStreamScript, toWholeScript } from "./script.ts";
import { imageUrls } from "./tokens.ts";

/**
 * `POST /v1/chat/completions`. Checks in this order: key, content type, JSON, fields, model, the model's abilities,
 * rate limit, fault. All checks run before the response starts, so that every refusal has its own status.
 */
export const completeChat: Handler = async (exchange) => {
  const { request, response, signal, context } = exchange;
  const account = readAccount(request);
  const body = readChatRequest(await readJsonBody(request));
  const asked = readAskedModel(body.model, request, "model", context.faults);
  const model = requireModel(account, asked.id, "chat");
  requireAbilities(model, body);
  context.countRequest(account.key, model.id);

  const cut = readCutAnswer(body.messages);
  const heard = { ...body, messages: [...withoutNames(cut?.before ?? body.messages)] };
  const directions = readDirections(heard.messages, context.faults);
  const fingerprint = createHash("sha256").update(JSON.stringify(body.messages)).digest("hex");
  const fault = meetFault(asked.fault ?? directions.fault, model.id, fingerprint, context.metOnce);

  const { content, toolCalls } = await answer(heard, directions, exchange);
  const whole = toCompletion(model.id, body, { content: cut?.toRest(content) ?? content, toolCalls });
  const completion = fault?.effect.say?.(whole, fault.argument) ?? whole;
  const tokensPerSecond = asked.tokensPerSecond ?? directions.tokensPerSecond;
  const isStream = body.stream === true && !fault?.effect.isWhole;
  const plain = isStream
    ? toStreamScript(completion, body.stream_options?.include_usage === true)
    : toWholeScript(completion, tokensPerSecond ?? Number.POSITIVE_INFINITY);
  const script = fault?.effect.send?.(plain, fault.argument) ?? plain;

  context.log.debug(
    { id: completion.id, model: model.id, fault: fault?.name, finish: completion.finishReason },
    "sandbox completion",
  );
  const { prompt_tokens, completion_tokens } = completion.usage;
  const { served } = context;
  let sent = 0;
  served.requests += 1;
  served.promptTokens += prompt_tokens;
  try {
    const speed = tokensPerSecond ?? context.tokensPerSecond;
    await playScript(script, response, speed, signal, (tokens) => (sent += tokens));
    sent = completion_tokens;
  } catch (error) {
    served.left += 1;
    throw error;
  } finally {
    served.completionTokens += Math.min(sent, completion_tokens);
  }
};

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
