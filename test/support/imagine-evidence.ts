import { createHash } from "node:crypto";
import sharp from "sharp";
import { expect } from "vitest";
import type { ImageCall } from "./image-gateway.ts";
import type { GivenFile, Shown, ShownPicture, Surface } from "./surface.ts";

export interface Source {
  mimeType: string;
  sha256: string;
}

/** The images, when there are this many and the bot is idle. With more, the test fails. */
export async function drawn(surface: Surface, count: number): Promise<readonly ShownPicture[]> {
  await surface.until(() => surface.pictures().length >= count, `${count} pictures`);
  await surface.idle();
  const pictures = surface.pictures();
  expect(pictures).toHaveLength(count);
  return pictures;
}

export async function drawnOne(surface: Surface): Promise<ShownPicture> {
  return newest(await drawn(surface, 1));
}

export function newest(pictures: readonly ShownPicture[]): ShownPicture {
  const picture = pictures.at(-1);
  if (picture === undefined) throw new Error("There is no picture.");
  return picture;
}

export function said(surface: Surface, words: RegExp): Promise<Shown> {
  return surface.until(() => surface.notes().find(({ text }) => words.test(text)), `a note with ${String(words)}`);
}

export function promptOf({ body }: ImageCall): string {
  return body.contents.flatMap(({ parts }) => parts.flatMap(({ text }) => text ?? [])).join("\n");
}

/** Fetches the links in a request. Each must have the type that the request names. */
export async function sourcesOf(call: ImageCall | undefined): Promise<Source[]> {
  const references = call?.body.contents.flatMap(({ parts }) => parts.flatMap(({ fileData }) => fileData ?? [])) ?? [];
  return Promise.all(
    references.map(async ({ mimeType, fileUri }) => {
      const response = await fetch(fileUri);
      return toSource(mimeType, new Uint8Array(await response.arrayBuffer()));
    }),
  );
}

export function pngs(...all: Uint8Array[]): Source[] {
  return all.map((bytes) => toSource("image/png", bytes));
}

export function toSource(mimeType: string, bytes: Uint8Array): Source {
  return { mimeType, sha256: createHash("sha256").update(bytes).digest("hex") };
}

export async function square(background: string, format: "png" | "jpeg" | "webp", name: string): Promise<GivenFile> {
  const create = { width: 64, height: 64, channels: 3 as const, background };
  return { name, bytes: new Uint8Array(await sharp({ create }).toFormat(format).toBuffer()) };
}
