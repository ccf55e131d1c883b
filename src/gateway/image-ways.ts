import { z } from "zod";
import { GatewayError } from "./errors.ts";
import { check, toJson } from "./request.ts";
import type { GatewayCall } from "./transport.ts";

/** The ratios that people can choose. Gemini's models before 3.1 don't accept the last four. */
export const ASPECT_RATIOS: readonly string[] = "1:1 16:9 9:16 4:3 3:4 3:2 2:3 5:4 4:5 21:9 1:4 4:1 1:8 8:1".split(" ");
/** The sizes that the interface names. Each size is twice as wide as the one before. */
export const IMAGE_SIZES: readonly string[] = ["1K", "2K", "4K"];

/** A reference image that the gateway fetches. The link must be public during the whole request. */
export interface LinkedReference {
  /** Must match the bytes that `fileUri` leads to. */
  mimeType: string;
  fileUri: string;
}

export interface LoadedReference {
  mimeType: string;
  bytes: Uint8Array;
}

/** The reference images, as links or as bytes. A method rejects if an image is not available in that form. */
export interface ReferenceSource {
  links(signal: AbortSignal): Promise<readonly LinkedReference[]>;
  load(signal: AbortSignal): Promise<readonly LoadedReference[]>;
}

export interface ImageRequest {
  model: string;
  /** Describes the image (subject, style, limits) or the change to the references. */
  prompt: string;
  references?: ReferenceSource;
  /** Absent: the model's default, usually `1:1`. */
  aspectRatio?: string;
  /** Absent: the model's default, usually `1K`. */
  imageSize?: string;
}

const imageRequest = z.object({
  model: z.string().min(1),
  prompt: z.string().regex(/\S/, "must not be empty"),
  aspectRatio: z
    .string()
    .regex(/^[1-9]\d?:[1-9]\d?$/, "must be width:height, for example 16:9")
    .optional(),
  imageSize: z
    .string()
    .regex(/^[1-9]\d?K$/, "must be a number and an upper-case K, for example 2K")
    .optional(),
});

/** Throws one `rejected` GatewayError that names every problem. */
export function checkImageRequest(request: ImageRequest): void {
  check(imageRequest, request, "The image request");
}

const link = z.object({
  mimeType: z.string().regex(/^image\/[a-z0-9.+-]+$/, "must be the type of an image, for example image/png"),
  fileUri: z.string().regex(/^https?:\/\/[^\s/]/i, "must be an http(s) address that the gateway can reach"),
});
const links = z.object({ references: z.array(link) });

export const IMAGE_APIS = ["generate-content", "images", "chat"] as const;

export type ImageApi = (typeof IMAGE_APIS)[number];

/** The optional fields of a request by name, each with the values to try, best first. */
export type Choices = Readonly<Record<string, readonly string[]>>;
export type Chosen = Readonly<Record<string, string>>;

export type ImageCall = Pick<GatewayCall, "api" | "path" | "body" | "contentType">;

export interface ImageWay {
  name: ImageApi;
  /** The name that the log and the doctor show. */
  label: string;
  choices(request: ImageRequest): Choices;
  toCall(request: ImageRequest, chosen: Chosen, signal: AbortSignal): Promise<ImageCall>;
  /** Returns which of the requested ratio and size the chosen values do not fulfil. */
  findUnmet(request: ImageRequest, chosen: Chosen): string[];
  /** A request without a prompt. The gateway refuses it at no cost. */
  toProbe(model: string): ImageCall;
}

/** The ways in the order in which Palaver tries them. The interface's own way is first. */
export const IMAGE_WAYS: readonly ImageWay[] = [
  {
    name: "generate-content",
    label: "POST /v1beta/models/…:generateContent",
    choices: ({ aspectRatio, imageSize }) => toChoices({ aspectRatio, imageSize }),
    async toCall({ model, prompt, references: source }, imageConfig, signal) {
      const references = (await source?.links(signal)) ?? [];
      check(links, { references }, "The image request");
      const files = references.map(({ mimeType, fileUri }) => ({ fileData: { mimeType, fileUri } }));
      const generationConfig = {
        responseModalities: ["TEXT", "IMAGE"],
        ...(Object.keys(imageConfig).length > 0 && { imageConfig }),
      };
      return toGoogleCall(model, { contents: [{ parts: [{ text: prompt }, ...files] }], generationConfig });
    },
    findUnmet: ({ aspectRatio, imageSize }, chosen) =>
      toUnmet(aspectRatio, chosen["aspectRatio"], imageSize, chosen["imageSize"]),
    toProbe: (model) => toGoogleCall(model, { contents: [] }),
  },
  {
    name: "images",
    label: "POST /v1/images/generations",
    choices: (request) => ({
      ...toChoices({ size: toPixelSizes(request) }),
      // Without this field, most models send a link, so the image is paid for but lost. OpenAI's newer models refuse
      // the field, at no cost.
      ...(!/gpt-image/i.test(request.model) && BASE64),
    }),
    async toCall({ model, prompt, references: source }, chosen, signal) {
      const references = (await source?.load(signal)) ?? [];
      const fields = { model, prompt, ...chosen };
      if (references.length === 0) return toOpenAiCall("/images/generations", fields);
      const form = new FormData();
      for (const [name, value] of Object.entries(fields)) form.set(name, value.toWellFormed());
      for (const [at, { mimeType, bytes }] of references.entries()) {
        const file = new Blob([new Uint8Array(bytes)], { type: mimeType });
        form.append(references.length > 1 ? "image[]" : "image", file, `${at + 1}.${mimeType.slice(6)}`);
      }
      return { api: "openai", path: "/images/edits", ...(await toMultipart(form)) };
    },
    findUnmet({ aspectRatio, imageSize }, { size }) {
      const [width = 0, height = 0] = (size ?? "").split("x").map(Number);
      const isInShape = aspectRatio !== undefined && Math.abs(width / height / toQuotient(aspectRatio) - 1) < 0.03;
      const isLarge = imageSize !== undefined && Math.sqrt(width * height) >= 900 * Number.parseInt(imageSize, 10);
      return toUnmet(aspectRatio, isInShape ? size : undefined, imageSize, isLarge ? size : undefined);
    },
    toProbe: (model) => toOpenAiCall("/images/generations", { model }),
  },
  {
    name: "chat",
    label: "POST /v1/chat/completions with modalities",
    // Models that write no text refuse the modality `text`.
    choices: ({ aspectRatio, imageSize }) => ({
      ...toChoices({ aspect_ratio: aspectRatio, image_size: imageSize }),
      modalities: ["image,text", "image"],
    }),
    async toCall({ model, prompt, references: source }, { modalities, ...config }, signal) {
      const pictures = ((await source?.load(signal)) ?? []).map(({ mimeType, bytes }) => {
        const url = `data:${mimeType};base64,${Buffer.from(bytes).toString("base64")}`;
        return { type: "image_url", image_url: { url } };
      });
      const content = pictures.length === 0 ? prompt : [{ type: "text", text: prompt }, ...pictures];
      return toOpenAiCall("/chat/completions", {
        model,
        messages: [{ role: "user", content }],
        ...(modalities !== undefined && { modalities: modalities.split(",") }),
        ...(Object.keys(config).length > 0 && { image_config: config }),
      });
    },
    findUnmet: ({ aspectRatio, imageSize }, chosen) =>
      toUnmet(aspectRatio, chosen["aspect_ratio"], imageSize, chosen["image_size"]),
    toProbe: (model) => toOpenAiCall("/chat/completions", { model, messages: [], modalities: ["image", "text"] }),
  },
];

/** Requests bytes instead of a link. */
export const BASE64: Choices = { response_format: ["b64_json"] };

function toGoogleCall(model: string, body: object): ImageCall {
  return { api: "google", path: `/v1beta/models/${encodeURIComponent(model)}:generateContent`, body: toJson(body) };
}

function toOpenAiCall(path: string, body: object): ImageCall {
  return { api: "openai", path, body: toJson(body) };
}

async function toMultipart(form: FormData): Promise<Pick<ImageCall, "body" | "contentType">> {
  const written = new Response(form);
  const contentType = written.headers.get("content-type") ?? "multipart/form-data";
  return { body: Buffer.from(await written.arrayBuffer()), contentType };
}

function toChoices(fields: Readonly<Record<string, string | readonly string[] | undefined>>): Choices {
  const entries = Object.entries(fields).map(([name, value]) => [name, [value ?? []].flat()] as const);
  return Object.fromEntries(entries.filter(([, values]) => values.length > 0));
}

/** Never lists the smallest size, because that size is the default. */
function toUnmet(ratio: string | undefined, gotRatio: unknown, size: string | undefined, gotSize: unknown): string[] {
  return [
    ...(ratio !== undefined && gotRatio === undefined ? [ratio] : []),
    ...(size !== undefined && size !== IMAGE_SIZES[0] && gotSize === undefined ? [size] : []),
  ];
}

/** The only sizes that these models accept, according to OpenAI's documentation. */
const FIXED_SIZES: ReadonlyArray<readonly [models: RegExp, square: string, wide: string, tall: string]> = [
  [/dall-e-2/i, "1024x1024", "1024x1024", "1024x1024"],
  [/dall-e-3/i, "1024x1024", "1792x1024", "1024x1792"],
  [/gpt-image-1/i, "1024x1024", "1536x1024", "1024x1536"],
];
const USUAL_SIZES = ["1024x1024", "1536x1024", "1024x1536"] as const;

/** Returns sizes in pixels, exact ones first, then the nearest size for models that accept only a few. */
function toPixelSizes({ model, aspectRatio, imageSize = "1K", references }: ImageRequest): string[] {
  const [, ...fixed] = FIXED_SIZES.find(([models]) => models.test(model)) ?? [];
  // If no ratio is requested, an image made from references keeps the references' shape.
  if (aspectRatio === undefined && (references !== undefined || imageSize === "1K")) return [];
  const ratio = toQuotient(aspectRatio ?? "1:1");
  const [square, wide, tall] = fixed.length > 0 ? fixed : USUAL_SIZES;
  const nearest = (ratio === 1 ? square : ratio > 1 ? wide : tall) ?? "";
  if (fixed.length > 0) return [nearest];
  const scales = [4, 2, 1].filter((scale) => scale <= Number.parseInt(imageSize, 10));
  return [...new Set([...scales.map((scale) => toPixels(ratio, 1_024 * scale)), nearest])];
}

/** Returns the size that has this ratio and the area of a square with this side. Models need multiples of 16. */
function toPixels(ratio: number, side: number): string {
  const round = (length: number) => Math.round(length / 16) * 16;
  return `${round(side * Math.sqrt(ratio))}x${round(side / Math.sqrt(ratio))}`;
}

function toQuotient(ratio: string): number {
  const [width = 1, height = 1] = ratio.split(":").map(Number);
  return width / height;
}

const ABSENT: ReadonlySet<number | undefined> = new Set([404, 405, 501]);
const NOT_IMPLEMENTED = /(not|n't) (be )?(support|implement)|unsupported|unimplemented/i;
const NOT_HERE =
  /(not|n't) .{0,20}(available|allow|work|found)|only .{0,20}(support|available|work)|(unknown|invalid) (url|path|route|endpoint|model)|not an? .{0,30}model|modalit|use (the )?\S* ?(endpoint|api)/i;

/** True if the gateway or the model does not support this way at all, so no image was created. */
export function isOtherWay({ status, reason, message }: GatewayError): boolean {
  if (ABSENT.has(status)) return true;
  if (reason !== undefined && reason !== "unknown-model") return false;
  if (status === 500) return NOT_IMPLEMENTED.test(message);
  return (status === 400 || status === 422) && (NOT_IMPLEMENTED.test(message) || NOT_HERE.test(message));
}

const UNKNOWN_FIELD = /unknown|unrecogni[sz]ed|unexpected|extra|additional/i;

export function findRefusedField(refusal: GatewayError, chosen: Chosen): string | undefined {
  const { kind, reason, param = "", message } = refusal;
  if (kind !== "rejected" || reason !== undefined) return undefined;
  const words = `${param} ${message}`;
  const isNamed = ([name, value]: [string, string]) =>
    new RegExp(`\\b${name.replace(/_|(?=[A-Z])/g, "[_ ]?")}\\b`, "i").test(words) || words.includes(value);
  // Without `modalities`, the model would answer with text instead of an image.
  const isNeeded = (name: string) => name === "modalities" && chosen[name] === "image" && !UNKNOWN_FIELD.test(message);
  const fields = Object.entries(chosen).filter(([name]) => !isNeeded(name));
  // Google's shortest refusal does not name the field.
  const isVague = /contains an invalid argument/i.test(message);
  return (fields.find(isNamed) ?? (isVague ? fields[0] : undefined))?.[0];
}
