import { createHash, randomUUID } from "node:crypto";
import { readImageAccount, requireModel } from "./access.ts";
import { readDirections } from "./directions.ts";
import { drawPicture, toPixelSize } from "./drawing.ts";
import { toInvalidRequest } from "./errors.ts";
import type { Exchange, Handler } from "./exchange.ts";
import { meetFault, type Part, readAskedModel } from "./faults.ts";
import { type Reference, readImageRequest, type SandboxImageRequest } from "./image-request.ts";
import { readJsonBody } from "./json-body.ts";
import { decodeBase64, fetchFile, type Picture, readPicture } from "./pictures.ts";
import { playScript, type Script, toJsonScript } from "./script.ts";
import { countTokens } from "./tokens.ts";

/** How long an image takes if its prompt says "slowly". */
const SLOW_MS = 5000;
/** The tokens of each image in a request or an answer. */
const PICTURE_TOKENS = 258;

/** `POST /v1beta/models/{model}:generateContent`. Makes the same checks as for chat, then fetches the references. */
export const generateImage: Handler = async (exchange) => {
  const { request, response, parameters, signal, context } = exchange;
  const account = readImageAccount(request);
  const asked = readImageRequest(await readJsonBody(request));
  const { id, fault: askedFault } = readAskedModel(parameters[0] ?? "", request, null, context.faults);
  const model = requireModel(account, id, "image");
  context.countRequest(account.key, model.id);

  const directions = readDirections([{ role: "user", content: asked.prompt }], context.faults);
  const fingerprint = createHash("sha256").update(JSON.stringify(asked)).digest("hex");
  const fault = meetFault(askedFault ?? directions.fault, model.id, fingerprint, context.metOnce);

  const references: Picture[] = [];
  for (const reference of asked.references) references.push(await loadReference(reference, exchange));
  const prompt = directions.fault === undefined ? asked.prompt : directions.text;
  const drawing = { ...asked, prompt, references };
  const png = asked.hasImage ? await drawPicture(drawing, signal) : undefined;

  const { served } = context;
  served.requests += 1;
  if (png !== undefined) served.pictures += 1;
  const parts = toParts(asked, png);
  const body = toBody(model.id, asked, fault?.effect.show?.(parts) ?? parts);
  served.promptTokens += body.usageMetadata.promptTokenCount;
  served.completionTokens += body.usageMetadata.candidatesTokenCount;
  const afterMs = /\bslowly\b/i.test(prompt) ? SLOW_MS : 0;
  const plain =
    parameters[1] === "generateContent" ? toJsonScript(body, afterMs) : toOneEvent(body, afterMs, request.url ?? "");
  context.log.debug(
    { id: body.responseId, model: model.id, fault: fault?.name, references: references.length },
    "sandbox picture",
  );
  await playScript(fault?.effect.send?.(plain, fault.argument) ?? plain, response, context.tokensPerSecond, signal);
};

/** Creates a stream with the whole answer as its only event. Without `alt=sse`, creates a list with one entry. */
function toOneEvent(body: unknown, afterMs: number, url: string): Script {
  if (!/[?&]alt=sse(?:&|$)/.test(url)) return toJsonScript([body], afterMs);
  return {
    contentType: "text/event-stream; charset=utf-8",
    steps: [
      { type: "wait", forMs: afterMs },
      { type: "send", bytes: `data: ${JSON.stringify(body)}\n\n`, tokens: 0 },
    ],
  };
}

/** Fetches a reference image. Throws a 400 if it is unreachable or does not have its declared type. */
async function loadReference({ param, mimeType, source }: Reference, { context, signal }: Exchange): Promise<Picture> {
  const place = `${param}.${source.type === "uri" ? "fileUri" : "data"}`;
  const bytes =
    source.type === "uri"
      ? await fetchFile(source.uri, place, context.trustedFileOrigins, signal)
      : decodeBase64(source.data, place);
  const picture = await readPicture(bytes, undefined, place, signal);
  if (picture.mimeType === mimeType) return picture;
  const message = `${param}.mimeType is ${mimeType}, but the picture's bytes are ${picture.mimeType}.`;
  throw toInvalidRequest(message, "mime_type_mismatch", `${param}.mimeType`);
}

function toParts(asked: SandboxImageRequest, png: Buffer | undefined): Part[] {
  const text = { text: describeDrawing(asked, png !== undefined) };
  if (png === undefined) return [text];
  const image = { inlineData: { mimeType: "image/png", data: png.toString("base64") } };
  return asked.hasText ? [text, image] : [image];
}

function describeDrawing(asked: SandboxImageRequest, isDrawn: boolean): string {
  if (!isDrawn) return "You asked for words only, so there is no picture. Add IMAGE to responseModalities to get one.";
  const { widthPx, heightPx } = toPixelSize(asked.aspectRatio, asked.imageSize);
  const count = asked.references.length;
  const from =
    count === 0 ? "from your words" : `from your words and ${count} reference picture${count === 1 ? "" : "s"}`;
  const nearest =
    asked.missing.length === 0 ? "" : ` I do not have ${asked.missing.join(" and ")}: this is the nearest.`;
  return `Here is a picture of ${widthPx} × ${heightPx} pixels, drawn ${from}.${nearest}`;
}

function toBody(model: string, { prompt, references }: SandboxImageRequest, parts: readonly Part[]) {
  const promptTokens = countTokens(prompt) + references.length * PICTURE_TOKENS;
  return {
    candidates: [{ content: { role: "model", parts }, finishReason: "STOP", index: 0 }],
    usageMetadata: {
      promptTokenCount: promptTokens,
      candidatesTokenCount: PICTURE_TOKENS,
      totalTokenCount: promptTokens + PICTURE_TOKENS,
    },
    modelVersion: model,
    responseId: randomUUID(),
  };
}
