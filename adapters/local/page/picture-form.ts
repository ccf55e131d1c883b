import type { FileRow, ImagineOptions } from "./wire.ts";

/** The options of an image, in addition to its description. "" leaves an option to the model. */
export interface PictureForm {
  ratio: string;
  size: string;
  count: string;
  model: string;
  isSpoiler: boolean;
  basis: { id: string; file: FileRow } | undefined;
}

export const NO_CHOICE: PictureForm = {
  ratio: "",
  size: "",
  count: "1",
  model: "",
  isSpoiler: false,
  basis: undefined,
};

const IMAGINE = /^\/imagine(?:\s+|$)/i;

/** The description of the image. Undefined if the text does not request one. */
export function readPrompt(text: string): string | undefined {
  return IMAGINE.test(text) ? text.replace(IMAGINE, "") : undefined;
}

export function toImagineText(prompt: string): string {
  return `/imagine ${prompt.trim()}`;
}

export function toOptions({ ratio, size, count, model, isSpoiler, basis }: PictureForm): ImagineOptions {
  return {
    ...(ratio !== "" && { ratio }),
    ...(size !== "" && { size }),
    ...(count !== "1" && { count }),
    ...(model !== "" && { model }),
    ...(isSpoiler && { spoiler: "true" }),
    ...(basis !== undefined && { basis: basis.id }),
  };
}

export function toForm(
  { ratio, size, count, model, spoiler }: ImagineOptions,
  basis: PictureForm["basis"],
): PictureForm {
  const isSpoiler = spoiler === "true";
  return { ratio: ratio ?? "", size: size ?? "", count: count ?? "1", model: model ?? "", isSpoiler, basis };
}

export function describeOptions({ ratio, size, count, model, spoiler }: ImagineOptions): string {
  const images = count === undefined ? undefined : `${count} images`;
  const cover = spoiler === "true" ? "covered" : undefined;
  return [ratio, size, images, model, cover].filter((each) => each !== undefined).join(" · ");
}
