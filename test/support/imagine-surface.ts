import type { ImagineOptions } from "../../src/port/catalogue.ts";
import type { Action, PressedAction } from "../../src/port/events.ts";
import type { PictureWorld } from "./picture-world.ts";

export interface GivenFile {
  name: string;
  bytes: Uint8Array;
}

/** A message of the bot, as people see it. */
export interface Shown {
  id: string;
  text: string;
  buttons: readonly Action[];
}

export interface ShownPicture extends Shown {
  name: string;
  altText: string;
  read(): Promise<Uint8Array>;
}

/** Ada asks, and Bob is there too. */
export type Person = "ada" | "bob";

/** A platform with the bot in it, and what people do there. */
export interface Surface {
  world: Pick<PictureWorld, "calls" | "meet" | "paint">;
  /** Ada gives the command, with a form where the platform takes files and options only there. */
  imagine(prompt: string, more?: { files?: readonly GivenFile[]; options?: ImagineOptions }): Promise<void>;
  /** Ada says it to the bot; what she says after that belongs to the same conversation. */
  say(text: string, files?: readonly GivenFile[]): Promise<void>;
  /** The pictures that stand there, oldest first. */
  pictures(): readonly ShownPicture[];
  /** All else that the bot shows, also to one person alone, oldest first. */
  notes(): readonly Shown[];
  press(on: Shown, action: PressedAction, who?: Person): Promise<void>;
  /** Ada opens the picture's form, puts another prompt into it and sends it. */
  edit(picture: ShownPicture, prompt: string): Promise<void>;
  /** Resolves to what `find` finds, asked again whenever something has changed. Rejects when it does not come. */
  until<T>(find: () => T | undefined | false, what: string): Promise<T>;
  /** Resolves when nothing is worked on, and all that came of it can be seen. */
  idle(): Promise<void>;
  /** The bot ends, and starts again on the same data. */
  restart(): Promise<void>;
}

/** "Upscale to 2K" is `upscale`. */
export function toAction(label: string): Action {
  return (/^\p{L}+/u.exec(label)?.[0] ?? "").toLowerCase() as Action;
}
