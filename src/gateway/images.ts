import { z } from "zod";
import { type AskDeps, ask, type CallOptions, type Endpoint, type Question, type Route } from "./ask.ts";
import { GatewayError, type GatewayErrorKind, isUndrawn } from "./errors.ts";
import { endSentence, hasError, toStreamError } from "./failures.ts";
import { isRecord, parseJson } from "./json.ts";
import { check, toJson } from "./request.ts";
import type { SafeText } from "./safe-text.ts";
import { readBody, type Send } from "./transport.ts";

/** Shapes that image models take; the interface names the first five. */
export const ASPECT_RATIOS: readonly string[] = "1:1 16:9 9:16 4:3 3:4 3:2 2:3 5:4 4:5 21:9".split(" ");
/** The sizes that the interface names, each twice as wide as the one before. */
export const IMAGE_SIZES: readonly string[] = ["1K", "2K", "4K"];

const reference = z.strictObject({
  /** Must match the bytes behind `fileUri`. */
  mimeType: z.string().regex(/^image\/[a-z0-9.+-]+$/, "must be the type of an image, for example image/png"),
  /** The gateway fetches it itself, so it must be reachable from the public network during the whole request. */
  fileUri: z.string().regex(/^https?:\/\/[^\s/]/i, "must be an http(s) address that the gateway can reach"),
});

export type ImageReference = z.infer<typeof reference>;

const imageRequest = z.strictObject({
  model: z.string().min(1),
  /** Subject, style, limits: what to draw, or what to change about the references. */
  prompt: z.string().regex(/\S/, "must not be empty"),
  references: z.array(reference).optional(),
  /** The gateway's default is `1:1`. */
  aspectRatio: z
    .string()
    .regex(/^[1-9]\d?:[1-9]\d?$/, "must be width:height, for example 16:9")
    .optional(),
  /** The gateway's default is `1K`. */
  imageSize: z
    .string()
    .regex(/^[1-9]\d?K$/, "must be a number and an upper-case K, for example 2K")
    .optional(),
  /** `TEXT` besides `IMAGE` asks for a few words too. Both are asked for when absent. */
  responseModalities: z
    .array(z.enum(["TEXT", "IMAGE"]))
    .refine((modalities) => modalities.includes("IMAGE"), "must contain IMAGE")
    .optional(),
});

export type ImageRequest = z.infer<typeof imageRequest>;

/** The request as JSON for the wire. Throws a `rejected` GatewayError that names every problem at once. */
export function toImageJson(request: ImageRequest): string {
  check(imageRequest, request, "The image request");
  const { prompt, references = [], aspectRatio, imageSize, responseModalities = ["TEXT", "IMAGE"] } = request;
  const hasConfig = aspectRatio !== undefined || imageSize !== undefined;
  return toJson({
    contents: [
      {
        parts: [{ text: prompt }, ...references.map(({ mimeType, fileUri }) => ({ fileData: { mimeType, fileUri } }))],
      },
    ],
    generationConfig: { responseModalities, ...(hasConfig ? { imageConfig: { aspectRatio, imageSize } } : {}) },
  });
}

/** The type of the error when the model declined; its message is then fit to be shown. */
export const NO_PICTURE = "no_picture";

export interface GeneratedImage {
  bytes: Uint8Array;
  /** Read from the bytes: the gateway's word does not count. */
  mimeType: string;
  /** The model's words about it; often empty. */
  text: string;
  /** Its cost in tokens, where the gateway tells. */
  usage?: ImageUsage;
}

export interface ImageUsage {
  promptTokens: number;
  completionTokens: number;
}

/**
 * The first picture in the answer, preferably none of the model's thoughts, and the text beside it. Throws a
 * GatewayError: `rejected` if the model declined, `malformed` if a picture is missing without a reason.
 */
export async function parseImage(json: string, maxImageBytes: number, safe: SafeText): Promise<GeneratedImage> {
  const answer = parseJson(json);
  if (hasError(answer)) throw toStreamError(answer, safe);
  if (!isRecord(answer) && !Array.isArray(answer)) {
    throw new GatewayError("malformed", "The gateway's answer to an image request is not JSON.");
  }
  const { thoughtBase64, base64 = thoughtBase64, texts, reason, usage } = search(answer);
  const text = texts.join("\n").trim();
  if (base64 === undefined) throw toNoImageError(text, reason, safe);
  const bytes = Buffer.from(base64.replace(/^data:[^,]*,/, ""), "base64");
  if (bytes.length > maxImageBytes) {
    throw new GatewayError("malformed", `The picture is larger than ${maxImageBytes} bytes.`);
  }
  // Its forty modules are loaded with the first picture.
  const { fileTypeFromBuffer } = await import("file-type");
  const type = await fileTypeFromBuffer(bytes);
  if (type === undefined || !type.mime.startsWith("image/")) {
    throw new GatewayError("malformed", "The gateway answered with bytes that are not a picture.");
  }
  return { bytes, mimeType: type.mime, text, ...(usage !== undefined && { usage }) };
}

interface Findings {
  base64: string | undefined;
  /** The first picture that the model drew for itself, on its way. */
  thoughtBase64: string | undefined;
  texts: string[];
  /** Why there may be no picture, in the gateway's own word. */
  reason: string | undefined;
  usage: ImageUsage | undefined;
}

/** Walks the answer in its order; without recursion, because the gateway chooses its depth. */
function search(answer: object): Findings {
  const findings: Findings = {
    base64: undefined,
    thoughtBase64: undefined,
    texts: [],
    reason: undefined,
    usage: undefined,
  };
  const open: Array<{ key: string; value: unknown; isThought: boolean }> = [];
  const enter = (value: object, isThought: boolean) => {
    for (const [key, inner] of Object.entries(value).toReversed()) open.push({ key, value: inner, isThought });
  };
  enter(answer, isThinking(answer));
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { key, value, isThought } = next;
    const base64 = readData(key, value);
    if (isThought) findings.thoughtBase64 ??= base64;
    else {
      findings.base64 ??= base64;
      note(key, value, findings);
    }
    if (typeof value === "object" && value !== null) enter(value, isThought || isThinking(value));
  }
  return findings;
}

/** A part with `thought` is the model talking to itself. */
function isThinking(value: object): boolean {
  return isRecord(value) && value.thought === true;
}

/** Undefined also where there is a place for data, but nothing in it. */
function readData(key: string, value: unknown): string | undefined {
  if (key !== "inlineData" && key !== "inline_data") return undefined;
  if (!isRecord(value) || typeof value.data !== "string") return undefined;
  return /^(?:data:[^,]*,)?\s*$/.test(value.data) ? undefined : value.data;
}

function note(key: string, value: unknown, findings: Findings): void {
  if (key === "usageMetadata" || key === "usage_metadata" || key === "usage") findings.usage ??= readUsage(value);
  if (typeof value !== "string") return;
  if (key === "text") findings.texts.push(value);
  if (key === "blockReason" || (key === "finishReason" && value !== "STOP")) findings.reason ??= value;
}

/** The interface leaves the place and the names of the counts open; these are the ones in use. */
function readUsage(value: unknown): ImageUsage | undefined {
  if (!isRecord(value)) return undefined;
  const countOf = (...names: string[]) =>
    names
      .map((name) => value[name])
      .find((count): count is number => Number.isSafeInteger(count) && Number(count) >= 0);
  const promptTokens = countOf("promptTokenCount", "prompt_tokens", "input_tokens");
  const completionTokens = countOf("candidatesTokenCount", "completion_tokens", "output_tokens");
  if (promptTokens === undefined && completionTokens === undefined) return undefined;
  return { promptTokens: promptTokens ?? 0, completionTokens: completionTokens ?? 0 };
}

function toNoImageError(text: string, reason: string | undefined, safe: SafeText): GatewayError {
  if (text === "" && reason === undefined) {
    return new GatewayError("malformed", "The gateway's answer has no picture in it.");
  }
  const why = reason === undefined ? "" : ` (${safe.name(reason)})`;
  const words = text === "" ? "." : `. It said: ${endSentence(safe.sentence(text))}`;
  const code = reason === undefined ? {} : { code: safe.name(reason) };
  return new GatewayError("rejected", "The model drew no picture", {
    quote: `${why}${words}`,
    type: NO_PICTURE,
    ...code,
  });
}

type GenerateImage = (
  request: ImageRequest,
  routes: readonly [Route, ...Route[]],
  options: CallOptions,
  signal: AbortSignal,
) => Promise<GeneratedImage>;

/** Room for the text beside the picture. */
const MAX_TEXT_BYTES = 1_048_576;
/** A picture that may have been made, and paid for, is not asked for elsewhere as well. */
const NOT_DRAWN: ReadonlySet<GatewayErrorKind> = new Set(["unreachable", "rate-limited", "overloaded"]);
const ELSEWHERE_STATUSES: ReadonlySet<number | undefined> = new Set([402, 501, 505]);

/** `keyHeader` carries the key if the gateway does not accept it as a Bearer. */
export function createGenerateImage(deps: AskDeps & { safe: SafeText }, keyHeader: string | undefined): GenerateImage {
  const { limits, safe, log } = deps;
  const send = keyHeader === undefined ? sendWithHint : createHeaderSend(keyHeader);
  const maxBytes = Math.ceil((limits.maxImageBytes * 4) / 3) + MAX_TEXT_BYTES;

  return async (request, routes, options, signal) => {
    const startedMs = performance.now();
    const body = toImageJson(request);
    const question: Question<GeneratedImage> = {
      routes,
      options,
      firstTokenTotalMs: Number.POSITIVE_INFINITY,
      hasBegun: () => false,
      adapt: () => false,
      isDown: (error) => (NOT_DRAWN.has(error.kind) && isUndrawn(error)) || ELSEWHERE_STATUSES.has(error.status),
      texts: () => [request.prompt],
      async call({ endpoint, model }, watch) {
        const path = `/v1beta/models/${encodeURIComponent(model)}:generateContent`;
        const { beforeSend } = options;
        const call = { method: "POST", api: "google", path, body, model, beforeSend } as const;
        return parseImage(
          await readBody(await send(endpoint, call, watch), maxBytes, watch),
          limits.maxImageBytes,
          safe,
        );
      },
    };
    const image = await ask(deps, question, signal);
    const totalMs = Math.round(performance.now() - startedMs);
    log.info(
      { model: request.model, mimeType: image.mimeType, sizeBytes: image.bytes.length, totalMs },
      "picture complete",
    );
    return image;
  };
}

type SendTo = (endpoint: Endpoint, ...call: Parameters<Send>) => ReturnType<Send>;

/** Sends the key as a Bearer, and after a 401 in its own header. Remembers the way that worked. */
function createHeaderSend(keyHeader: string): SendTo {
  const usesHeader = new Set<Endpoint>();

  return async (endpoint, call, watch) => {
    if (!usesHeader.has(endpoint)) {
      try {
        return await endpoint.send(call, watch);
      } catch (error) {
        if (!isUnauthorized(error)) throw error;
      }
    }
    try {
      const body = await endpoint.send({ ...call, keyHeader }, watch);
      usesHeader.add(endpoint);
      return body;
    } catch (error) {
      if (isUnauthorized(error)) usesHeader.delete(endpoint);
      throw error;
    }
  };
}

const sendWithHint: SendTo = (endpoint, call, watch) =>
  endpoint.send(call, watch).catch((error: unknown) => {
    if (!isUnauthorized(error)) throw error;
    const hint = "If it takes the key for pictures in a header of its own, set GATEWAY_IMAGE_KEY_HEADER.";
    const { kind, logMessage, quote } = error;
    throw new GatewayError(kind, `${logMessage} ${hint}`, { cause: error, quote, status: 401 });
  });

function isUnauthorized(error: unknown): error is GatewayError {
  return error instanceof GatewayError && error.status === 401;
}
