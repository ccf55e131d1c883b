/** What people choose for a picture, on every platform. Part of the port: types only. */
import type { ActionEvent } from "./adapter.ts";

/** What the fields of a picture's form are called in `CommandEvent.options`; all are text, as people write it. */
export interface ImagineOptions {
  ratio?: string;
  size?: string;
  count?: string;
  model?: string;
  /** "true": covered until somebody wants to see it. */
  spoiler?: string;
  /** The picture whose `edit` opened the form: it becomes the first reference. */
  basis?: string;
}

/** Somebody who does something, and where. */
export type Actor = Pick<ActionEvent, "author" | "reply">;

/** What a platform's form for pictures offers. */
export interface ImagineMenu {
  ratios: readonly string[];
  sizes: readonly string[];
  maxCount: number;
  maxReferences: number;
  /** The models that draw, the usual one first. */
  listModels(signal: AbortSignal): Promise<readonly string[]>;
  /**
   * How a picture was asked for, to fill its `edit` form with; undefined when it is not kept any more, and for those who
   * cannot have it before them.
   */
  describe(pictureId: string, by: Actor, signal: AbortSignal): Promise<Described | undefined>;
}

export interface Described {
  prompt: string;
  options: ImagineOptions;
}
