import { z } from "zod";
import { toInvalidRequest } from "./errors.ts";
import { checkFields, toParam } from "./field-check.ts";

export const ASPECT_RATIOS = ["1:1", "16:9", "9:16", "4:3", "3:4", "3:2", "2:3", "5:4", "4:5", "21:9"] as const;
export const IMAGE_SIZES = ["1K", "2K", "4K"] as const;
const MAX_REFERENCES = 16;

/** The interface gives only examples. For another value of the same form, the sandbox uses the nearest example. */
const ratio = z.string().regex(/^[1-9]\d?:[1-9]\d?$/, "must be width:height, such as 16:9.");
const size = z.string().regex(/^[1-9]\d?K$/, "must be a number and an upper-case K, such as 2K.");

const mimeType = z
  .string()
  .regex(/^image\/[a-z0-9.+-]+$/, "must be the type of a picture in lower case, such as image/png.");
const displayName = z.string().nullish();

/** Google's Python client spells these fields with underscores, but not `fileData` and `inlineData`. */
const SPELLINGS: ReadonlyMap<string, string> = new Map([
  ["mime_type", "mimeType"],
  ["file_uri", "fileUri"],
  ["display_name", "displayName"],
]);
const fileData = z.preprocess(respell, z.strictObject({ mimeType, fileUri: z.string().min(1), displayName }));
const inlineData = z.preprocess(respell, z.strictObject({ mimeType, data: z.string().min(1), displayName }));

const part = z
  .strictObject({
    text: z.string().min(1).optional(),
    fileData: fileData.optional(),
    inlineData: inlineData.optional(),
  })
  .refine((fields) => Object.values(fields).filter((value) => value !== undefined).length === 1, {
    error: "must have exactly one of text, fileData and inlineData.",
  });

const content = z.strictObject({ role: z.enum(["user", "model"]).nullish(), parts: z.array(part).min(1) });

/** Fields that Google's client sends although the interface lacks them. The sandbox checks and ignores them. */
const beyond = {
  temperature: z.number().min(0).max(2).nullish(),
  topP: z.number().min(0).max(1).nullish(),
  topK: z.number().min(0).nullish(),
  seed: z.int().nullish(),
  candidateCount: z.literal(1).nullish(),
  maxOutputTokens: z.int().min(1).nullish(),
  stopSequences: z.array(z.string()).nullish(),
  presencePenalty: z.number().min(-2).max(2).nullish(),
  frequencyPenalty: z.number().min(-2).max(2).nullish(),
  responseMimeType: z.literal("text/plain").nullish(),
  thinkingConfig: z.looseObject({}).nullish(),
};

const imageRequest = z.strictObject({
  contents: z.array(content).min(1),
  generationConfig: z
    .strictObject({
      // The interface says both that this field is required and that it has a default; the sandbox fills in the
      // default.
      responseModalities: z
        .array(z.enum(["TEXT", "IMAGE"]))
        .min(1)
        .nullish(),
      imageConfig: z.strictObject({ aspectRatio: ratio.nullish(), imageSize: size.nullish() }).nullish(),
      ...beyond,
    })
    .nullish(),
  systemInstruction: z
    .strictObject({ role: z.string().nullish(), parts: z.array(z.strictObject({ text: z.string() })).min(1) })
    .nullish(),
  safetySettings: z.array(z.unknown()).nullish(),
});

export interface Reference {
  /** The path of the image's part, as error objects write it. */
  param: string;
  /** The type that the request declares, possibly not the type of the bytes. */
  mimeType: string;
  source: { type: "uri"; uri: string } | { type: "inline"; data: string };
}

export interface SandboxImageRequest {
  prompt: string;
  /** In request order. */
  references: Reference[];
  hasImage: boolean;
  hasText: boolean;
  aspectRatio: (typeof ASPECT_RATIOS)[number];
  imageSize: (typeof IMAGE_SIZES)[number];
  /** Requested options that the sandbox lacks. It uses the nearest ones instead. */
  missing: string[];
}

/** Checks the whole request and adds the defaults of the interface. Throws a 400. */
export function readImageRequest(body: Record<string, unknown>): SandboxImageRequest {
  const { contents, generationConfig } = checkFields(imageRequest, body);
  const parts = contents.flatMap((content, at) =>
    content.parts.map((part, index) => ({ part, path: ["contents", at, "parts", index] })),
  );
  const texts = parts.flatMap(({ part }) => (part.text === undefined ? [] : [part.text]));
  if (texts.length === 0) {
    const param = "contents[0].parts";
    throw toInvalidRequest(
      `${param} must have a part with text: the instruction for the picture.`,
      "missing_required_parameter",
      param,
    );
  }
  const references = parts.flatMap(({ part, path }) => readReference(part, toParam(path)));
  if (references.length > MAX_REFERENCES) {
    const message = `contents has ${references.length} reference pictures; at most ${MAX_REFERENCES} are taken.`;
    throw toInvalidRequest(message, "array_above_max_length", "contents");
  }
  const modalities = generationConfig?.responseModalities ?? ["TEXT", "IMAGE"];
  const { aspectRatio, imageSize } = generationConfig?.imageConfig ?? {};
  const shape = toNearest(aspectRatio ?? "1:1", ASPECT_RATIOS);
  const scale = toNearest(imageSize ?? "1K", IMAGE_SIZES);
  return {
    prompt: texts.join("\n"),
    references,
    hasImage: modalities.includes("IMAGE"),
    hasText: modalities.includes("TEXT"),
    aspectRatio: shape,
    imageSize: scale,
    missing: [
      ...(aspectRatio && aspectRatio !== shape ? [`the ratio ${aspectRatio}`] : []),
      ...(imageSize && imageSize !== scale ? [`the size ${imageSize}`] : []),
    ],
  };
}

/** Finds the option that is closest to the requested one, by the factor between them. */
function toNearest<T extends string>(asked: string, known: readonly T[]): T {
  const distance = (other: T) => Math.abs(Math.log(toNumber(asked) / toNumber(other)));
  return known.reduce((best, other) => (distance(other) < distance(best) ? other : best));
}

/** Reads `16:9` as a quotient and `2K` as a number. */
function toNumber(text: string): number {
  const [first = 1, second = 1] = text.split(":").map((part) => Number.parseInt(part, 10));
  return first / second;
}

function readReference({ fileData, inlineData }: z.infer<typeof part>, param: string): Reference[] {
  if (fileData) {
    return [
      { param: `${param}.fileData`, mimeType: fileData.mimeType, source: { type: "uri", uri: fileData.fileUri } },
    ];
  }
  if (!inlineData) return [];
  return [
    {
      param: `${param}.inlineData`,
      mimeType: inlineData.mimeType,
      source: { type: "inline", data: toPlainBase64(inlineData.data) },
    },
  ];
}

/** A field in both spellings stays unchanged, so that the check refuses it as unknown. */
function respell(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value).map(([name, inner]) => {
    const spelling = SPELLINGS.get(name) ?? name;
    return [spelling in value ? name : spelling, inner];
  });
  return Object.fromEntries(entries);
}

/** Google's Python client sends base64url. */
function toPlainBase64(data: string): string {
  return data.replaceAll("-", "+").replaceAll("_", "/");
}
