import { z } from "zod";
import { check, toJson } from "./validate.ts";

/** Shapes that image models take; the interface names the first five. */
export const ASPECT_RATIOS: readonly string[] = "1:1 16:9 9:16 4:3 3:4 3:2 2:3 5:4 4:5 21:9".split(" ");
/** The sizes that the interface names, each twice as wide as the one before. */
export const IMAGE_SIZES: readonly string[] = ["1K", "2K", "4K"];

/** A picture to work from. */
export interface ImageReference {
  /** Must match the bytes behind `fileUri`. */
  mimeType: string;
  /** The gateway fetches it itself, so it must be reachable from the public network during the whole request. */
  fileUri: string;
}

export interface ImageRequest {
  model: string;
  /** Subject, style, limits: what to draw, or what to change about the references. */
  prompt: string;
  references?: ImageReference[];
  /** `16:9`. The gateway's default is `1:1`. */
  aspectRatio?: string;
  /** `1K`, `2K`, `4K`. The gateway's default is `1K`. */
  imageSize?: string;
  /** `TEXT` besides `IMAGE` asks for a few words too. Both are asked for when absent. */
  responseModalities?: Array<"TEXT" | "IMAGE">;
}

const imageRequest = z.strictObject({
  model: z.string().min(1),
  prompt: z.string().regex(/\S/, "must not be empty"),
  references: z
    .array(
      z.strictObject({
        mimeType: z.string().regex(/^image\/[a-z0-9.+-]+$/, "must be the type of an image, for example image/png"),
        fileUri: z.string().regex(/^https?:\/\/[^\s/]/i, "must be an http(s) address that the gateway can reach"),
      }),
    )
    .optional(),
  aspectRatio: z
    .string()
    .regex(/^[1-9]\d?:[1-9]\d?$/, "must be width:height, for example 16:9")
    .optional(),
  imageSize: z
    .string()
    .regex(/^[1-9]\d?K$/, "must be a number and an upper-case K, for example 2K")
    .optional(),
  responseModalities: z
    .array(z.enum(["TEXT", "IMAGE"]))
    .refine((modalities) => modalities.includes("IMAGE"), "must contain IMAGE")
    .optional(),
});

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
