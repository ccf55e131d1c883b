import { createAnswerText } from "./answer-text.ts";
import { GatewayError } from "./errors.ts";
import { endSentence, hasError, toStreamError } from "./failures.ts";
import { isRecord, parseJson } from "./json.ts";
import type { SafeText } from "./safe-text.ts";

/** The error's type if the model refused to create the image. People may see the text that the error quotes. */
export const NO_PICTURE = "no_picture";
/** The error's code if the gateway sent a link instead of the image. */
export const LINK_ONLY = "link_only";

export interface GeneratedImage {
  bytes: Uint8Array;
  /** The type detected from the bytes, because the gateway's label can be wrong. */
  mimeType: string;
  /** The model's words about the image; often empty. */
  text: string;
  /** Which of the requested ratio and size the gateway did not accept. */
  unmet?: readonly string[];
  /** The cost in tokens, if the gateway reports it. */
  usage?: ImageUsage;
}

export interface ImageUsage {
  promptTokens: number;
  completionTokens: number;
}

/**
 * Reads the first image and the text next to it, in any of the three formats. Prefers images outside the model's
 * thoughts. Throws a GatewayError: `rejected` if the model refused, `malformed` if the image is missing without a
 * reason.
 */
export async function parseImage(json: string, maxImageBytes: number, safe: SafeText): Promise<GeneratedImage> {
  const answer = parseJson(json);
  if (hasError(answer)) throw toStreamError(answer, safe);
  if (!isRecord(answer) && !Array.isArray(answer)) {
    throw new GatewayError("malformed", "The gateway's response to an image request is not JSON.");
  }
  const findings = search(answer);
  const { thoughtBase64, base64 = thoughtBase64, usage } = findings;
  const text = findings.texts.join("\n").trim();
  if (base64 === undefined) throw toNoImageError(findings, text, safe);
  const bytes = Buffer.from(base64.replace(/^data:[^,]*,/, ""), "base64");
  if (bytes.length > maxImageBytes) {
    throw new GatewayError("malformed", `The image is larger than ${maxImageBytes} bytes.`);
  }
  // Loaded with the first image, because the library has forty modules.
  const { fileTypeFromBuffer } = await import("file-type");
  const type = await fileTypeFromBuffer(bytes);
  if (type === undefined || !type.mime.startsWith("image/")) {
    throw new GatewayError("malformed", "The gateway responded with bytes that are not an image.");
  }
  return { bytes, mimeType: type.mime, text, ...(usage !== undefined && { usage }) };
}

interface Findings {
  base64?: string | undefined;
  /** The first image in the model's thoughts. */
  thoughtBase64?: string | undefined;
  hasLink: boolean;
  texts: string[];
  /** The gateway's reason for sending no image. */
  reason?: string;
  usage?: ImageUsage | undefined;
}

/** Visits all fields in order, without recursion, because the gateway chooses the depth. */
function search(answer: object): Findings {
  const findings: Findings = { hasLink: false, texts: [] };
  const open: Array<{ key: string; value: unknown; isThought: boolean }> = [];
  const enter = (value: object, isThought: boolean) => {
    for (const [key, inner] of Object.entries(value).toReversed()) open.push({ key, value: inner, isThought });
  };
  enter(answer, isThinking("", answer));
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { key, value, isThought } = next;
    const { base64, text } = readData(key, value);
    if (isThought) findings.thoughtBase64 ??= base64;
    else {
      findings.base64 ??= base64;
      if (text !== undefined) findings.texts.push(text);
      note(key, value, findings);
    }
    if (typeof value === "object" && value !== null) enter(value, isThought || isThinking(key, value));
  }
  return findings;
}

/** True for a part with `thought`, which is not for the user, and for the thoughts of chat models. */
function isThinking(key: string, value: object): boolean {
  return (isRecord(value) && value.thought === true) || /^(reasoning|thinking)/.test(key);
}

const EMPTY = /^(?:data:[^,]*,)?\s*$/;

/** Reads one field that can contain an image, text, or text with an image in it. */
function readData(key: string, value: unknown): { base64?: string | undefined; text?: string } {
  const isInline = (key === "inlineData" || key === "inline_data") && isRecord(value);
  const data: unknown = isInline ? value.data : value;
  if (typeof data !== "string" || EMPTY.test(data)) return {};
  if (isInline || key === "b64_json") return { base64: data };
  if (key === "text" || key === "content") return takePicture(data);
  return (key === "url" || key === "image_url") && data.startsWith("data:image/") ? { base64: data } : {};
}

/** Finds an image that is written into the text as a data URL. */
function takePicture(text: string): { base64?: string | undefined; text: string } {
  if (!/data:image\//i.test(text)) return { text };
  const filter = createAnswerText();
  const choice = { index: 0, delta: { content: text, pictures: [] as string[] } };
  filter.apply(choice);
  const { content, pictures } = filter.rest();
  return { text: choice.delta.content + content, base64: [...choice.delta.pictures, ...pictures][0] };
}

function note(key: string, value: unknown, findings: Findings): void {
  if (key === "usageMetadata" || key === "usage_metadata" || key === "usage") findings.usage ??= readUsage(value);
  if (typeof value !== "string") return;
  if (key === "refusal") findings.texts.push(value);
  if (key === "url" && /^https?:/.test(value)) findings.hasLink = true;
  const isReason = /^(block|finish)_?reason$/i.test(key);
  if (isReason && !/^(stop|finish_reason_unspecified)$/i.test(value)) findings.reason ??= value;
}

/** Reads the token counts in any position and under any name. The interface does not define them. */
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

/** The words of gateways' filters, in codes and in sentences. */
const FILTER_CODE = /safety|prohibited_?content|moderation|content_?(filter|policy)|blocklist|jailbreak|spii/i;
const FILTER_WORDS =
  /\b(image_?)?safety[_ ](system|filters?|polic\w+|settings|violations?)|image_?safety|prohibited_?content|moderation_?blocked|content moderation|content (filter|polic)/i;

/** True if a safety filter refused the image, in any gateway's words. */
export function isFiltered({ kind, reason, type = "", code = "", message }: GatewayError): boolean {
  if (kind !== "rejected" && kind !== "interrupted") return reason === "filtered";
  return reason === "filtered" || FILTER_CODE.test(`${type} ${code}`) || FILTER_WORDS.test(message);
}

function toNoImageError({ reason, hasLink }: Findings, text: string, safe: SafeText): GatewayError {
  if (text === "" && reason === undefined) {
    return hasLink
      ? new GatewayError("malformed", "The gateway responded with a link instead of the image.", { code: LINK_ONLY })
      : new GatewayError("malformed", "The gateway's response contains no image.");
  }
  const code = reason === undefined ? undefined : safe.name(reason);
  const why = code === undefined ? "" : ` (${code})`;
  return new GatewayError("rejected", "The model created no image", {
    quote: `${why}${text === "" ? "." : `. It said: ${endSentence(safe.sentence(text))}`}`,
    type: NO_PICTURE,
    code,
    ...(code !== undefined && FILTER_CODE.test(code) && { reason: "filtered" }),
  });
}
