import { fileTypeFromBuffer } from "file-type";
import { GatewayError } from "./errors.ts";
import { endSentence, hasError, isRecord, parseJson, toStreamError } from "./failures.ts";
import type { SafeText } from "./safe-text.ts";

/** The type of the error when the model declined; its message is then fit to be shown. */
export const NO_PICTURE = "no_picture";

export interface GeneratedImage {
  bytes: Uint8Array;
  /** As the bytes say, never as the gateway says. */
  mimeType: string;
  /** What the model said about it; often empty. */
  text: string;
  /** What it cost, where the gateway tells. */
  usage?: ImageUsage;
}

export interface ImageUsage {
  promptTokens: number;
  completionTokens: number;
}

/**
 * The first picture anywhere in the answer, one of the model's thoughts only where there is no other, and the text
 * beside it. Throws a GatewayError: `rejected` when the
 * model declined in words or by a filter, `malformed` when there is no usable picture for no stated reason.
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
  const type = await fileTypeFromBuffer(bytes);
  if (type === undefined || !type.mime.startsWith("image/")) {
    throw new GatewayError("malformed", "The gateway answered with bytes that are not a picture.");
  }
  return { bytes, mimeType: type.mime, text, ...(usage !== undefined && { usage }) };
}

interface Findings {
  base64: string | undefined;
  /** Of a picture that the model drew for itself, on its way. */
  thoughtBase64: string | undefined;
  texts: string[];
  /** Why there may be no picture, in the gateway's own word. */
  reason: string | undefined;
  usage: ImageUsage | undefined;
}

/**
 * Walks the answer in the order it is written. Without recursion, because how deep it goes is the gateway's
 * choice.
 */
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
