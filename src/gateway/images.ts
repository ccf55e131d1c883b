import { ask, type CallDeps } from "./call.ts";
import { GatewayError } from "./errors.ts";
import { type GeneratedImage, parseImage } from "./image-answer.ts";
import { type ImageRequest, toImageJson } from "./image-request.ts";
import type { CallOptions } from "./retry.ts";
import type { Send, Transport } from "./transport.ts";

type GenerateImage = (request: ImageRequest, signal: AbortSignal, options: CallOptions) => Promise<GeneratedImage>;

/** Room for the text beside the picture. */
const MAX_TEXT_BYTES = 1_048_576;

/** `keyHeader` carries the key where the gateway does not take it as a Bearer. */
export function createGenerateImage(deps: CallDeps, keyHeader: string | undefined): GenerateImage {
  const { transport, limits, safe, log } = deps;
  const send = keyHeader === undefined ? sendWithHint(transport) : createHeaderSend(transport, keyHeader);
  const maxBytes = Math.ceil((limits.maxImageBytes * 4) / 3) + MAX_TEXT_BYTES;

  return async (request, signal, options) => {
    const { model } = request;
    const startedMs = performance.now();
    const json = toImageJson(request);
    const path = `/v1beta/models/${encodeURIComponent(model)}:generateContent`;
    const question = {
      call: { method: "POST", path, json, model } as const,
      maxBytes,
      send,
      read: (answer: string) => parseImage(answer, limits.maxImageBytes, safe),
    };
    const image = await ask(deps, question, signal, options);
    const totalMs = Math.round(performance.now() - startedMs);
    log.info({ model, mimeType: image.mimeType, sizeBytes: image.bytes.length, totalMs }, "picture complete");
    return image;
  };
}

/**
 * Sends with the key as a Bearer; where that is answered with 401, once more with the key in its own header.
 * What worked is remembered, until it no longer does.
 */
function createHeaderSend(transport: Transport, keyHeader: string): Send {
  let usesHeader = false;

  return async (call, watch) => {
    if (!usesHeader) {
      try {
        return await transport.send(call, watch);
      } catch (error) {
        if (!isUnauthorized(error)) throw error;
      }
    }
    try {
      const body = await transport.send({ ...call, keyHeader }, watch);
      usesHeader = true;
      return body;
    } catch (error) {
      if (isUnauthorized(error)) usesHeader = false;
      throw error;
    }
  };
}

function sendWithHint(transport: Transport): Send {
  return (call, watch) =>
    transport.send(call, watch).catch((error: unknown) => {
      if (!isUnauthorized(error)) throw error;
      const hint = "If it takes the key for pictures in a header of its own, set GATEWAY_IMAGE_KEY_HEADER.";
      const { kind, logMessage, quote } = error;
      throw new GatewayError(kind, `${logMessage} ${hint}`, { cause: error, quote, status: 401 });
    });
}

function isUnauthorized(error: unknown): error is GatewayError {
  return error instanceof GatewayError && error.status === 401;
}
