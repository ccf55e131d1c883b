import { createHash } from "node:crypto";
import { type ModelCard, readAccount, requireModel } from "./access.ts";
import { readChatRequest, type SandboxChatRequest } from "./chat-request.ts";
import { toCompletion } from "./completion.ts";
import { converse } from "./conversation.ts";
import { readDirections } from "./directions.ts";
import { toInvalidRequest } from "./errors.ts";
import { type Handler, meetFault, readAskedModel } from "./exchange.ts";
import { readJsonBody } from "./json-body.ts";
import { playScript, toStreamScript, toWholeScript } from "./script.ts";
import { applyToCompletion, applyToScript } from "./script-faults.ts";
import { imageUrls } from "./tokens.ts";

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
  context.rateLimit.count(account.key, model.id);

  const directions = readDirections(body.messages);
  const fingerprint = createHash("sha256").update(JSON.stringify(body.messages)).digest("hex");
  const fault = meetFault(asked.fault ?? directions.fault, model.id, fingerprint, context);

  const answer = await converse(body, directions, exchange);
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
  await playScript(played, response, tokensPerSecond ?? context.tokensPerSecond, signal);
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
