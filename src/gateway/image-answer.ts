import { createAnswerText } from "./answer-text.ts";
import { GatewayError } from "./errors.ts";
import { endSentence, hasError, toStreamError } from "./failures.ts";
import { isRecord, parseJson } from "./json.ts";
import type { SafeText } from "./safe-text.ts";

/** The type of the error when the model declined; its quote is then fit to be shown. */
export const NO_PICTURE = "no_picture";
/** The code of the error when the gateway sent a link instead of the picture. */
export const LINK_ONLY = "link_only";

export interface GeneratedImage {
  bytes: Uint8Array;
  /** Read from the bytes: the gateway's word does not count. */
  mimeType: string;
  /** The model's words about it; often empty. */
  text: string;
  /** The requested ratio and size, if the gateway does not accept them. */
  unmet?: readonly string[];
  /** Its cost in tokens, where the gateway tells. */
  usage?: ImageUsage;
}

export interface ImageUsage {
  promptTokens: number;
  completionTokens: number;
}

/**
 * The first picture in the answer, preferably none of the model's thoughts, and the text beside it; in whichever of the
 * three ways it is written. Throws a GatewayError: `rejected` if the model declined, `malformed` if a picture is missing
 * without a reason.
 */
export async function parseImage(json: string, maxImageBytes: number, safe: SafeText): Promise<GeneratedImage> {
  const answer = parseJson(json);
  if (hasError(answer)) throw toStreamError(answer, safe);
  if (!isRecord(answer) && !Array.isArray(answer)) {
    throw new GatewayError("malformed", "The gateway's answer to an image request is not JSON.");
  }
  const findings = search(answer);
  const { thoughtBase64, base64 = thoughtBase64, usage } = findings;
  const text = findings.texts.join("\n").trim();
  if (base64 === undefined) throw toNoImageError(findings, text, safe);
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
  base64?: string | undefined;
  /** The first picture that the model drew for itself, on its way. */
  thoughtBase64?: string | undefined;
  hasLink: boolean;
  texts: string[];
  /** Why there may be no picture, in the gateway's own word. */
  reason?: string;
  usage?: ImageUsage | undefined;
}

/** Walks the answer in its order; without recursion, because the gateway chooses its depth. */
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

/** A part with `thought` is the model talking to itself, and so is what chat models give beside their answer. */
function isThinking(key: string, value: object): boolean {
  return (isRecord(value) && value.thought === true) || /^(reasoning|thinking)/.test(key);
}

const EMPTY = /^(?:data:[^,]*,)?\s*$/;

/** Reads one field that may hold a picture, text, or text with a picture in it. */
function readData(key: string, value: unknown): { base64?: string | undefined; text?: string } {
  const isInline = (key === "inlineData" || key === "inline_data") && isRecord(value);
  const data: unknown = isInline ? value.data : value;
  if (typeof data !== "string" || EMPTY.test(data)) return {};
  if (isInline || key === "b64_json") return { base64: data };
  if (key === "text" || key === "content") return takePicture(data);
  return (key === "url" || key === "image_url") && data.startsWith("data:image/") ? { base64: data } : {};
}

/** A picture may be written into the text, as a data URL. */
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

/** The words that gateways have for their filters: in codes of any spelling, and in sentences. */
const FILTER_CODE = /safety|prohibited_?content|moderation|content_?(filter|policy)|blocklist|jailbreak|spii/i;
const FILTER_WORDS =
  /\b(image_?)?safety[_ ](system|filters?|polic\w+|settings|violations?)|image_?safety|prohibited_?content|moderation_?blocked|content moderation|content (filter|polic)/i;

/** True if a safety filter refused the picture, whatever its gateway calls that. */
export function isFiltered({ kind, reason, type = "", code = "", message }: GatewayError): boolean {
  if (kind !== "rejected" && kind !== "interrupted") return reason === "filtered";
  return reason === "filtered" || FILTER_CODE.test(`${type} ${code}`) || FILTER_WORDS.test(message);
}

function toNoImageError({ reason, hasLink }: Findings, text: string, safe: SafeText): GatewayError {
  if (text === "" && reason === undefined) {
    return hasLink
      ? new GatewayError("malformed", "The gateway answered with a link instead of the picture.", { code: LINK_ONLY })
      : new GatewayError("malformed", "The gateway's answer has no picture in it.");
  }
  const code = reason === undefined ? undefined : safe.name(reason);
  const why = code === undefined ? "" : ` (${code})`;
  return new GatewayError("rejected", "The model drew no picture", {
    quote: `${why}${text === "" ? "." : `. It said: ${endSentence(safe.sentence(text))}`}`,
    type: NO_PICTURE,
    code,
    ...(code !== undefined && FILTER_CODE.test(code) && { reason: "filtered" }),
  });
}
