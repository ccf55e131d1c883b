import type { ImagineOptions } from "../../src/port/catalogue.ts";
import type { Action, PressedAction, ScheduleFields } from "../../src/port/events.ts";
import type { SmallLine } from "../../src/text/sources.ts";
import type { World } from "./surface-world.ts";

export interface GivenFile {
  name: string;
  bytes: Uint8Array;
}

/** Ada asks, and Bob is also there. */
export type Person = "ada" | "bob";

export interface Said {
  id: string;
}

export interface SayOptions {
  files?: readonly GivenFile[];
  /** If absent, Ada. */
  who?: Person;
}

export interface Shown {
  id: string;
  text: string;
  buttons: readonly Action[];
  fileNames: readonly string[];
  /** The small print under the text: the number, the label and the address of each source. */
  sources: readonly string[];
  /** The only person who sees it; undefined if everyone there does. */
  onlyFor: Person | undefined;
}

export interface ShownPicture extends Shown {
  name: string;
  altText: string;
  read(): Promise<Uint8Array>;
}

/** A platform with the bot in it, and all actions of people there. */
export interface Surface {
  world: World;
  /** A person addresses the bot in public, which starts a conversation. */
  ask(text: string, more?: SayOptions): Promise<Said>;
  /** A person writes in the newest conversation without a mention. */
  goOn(text: string, more?: SayOptions): Promise<Said>;
  /** Ada writes to the bot alone. */
  askDirectly(text: string): Promise<Said>;
  /** The text that mentions this person or the bot. */
  mentionOf(who: Person | "bot"): string;
  rewrite(said: Said, text: string): Promise<void>;
  takeBack(said: Said): Promise<void>;
  /** The platform delivers a message a second time. */
  redeliver(said: Said): Promise<void>;
  /** True if the message has the mark which shows that it waits. */
  isMarked(said: Said): boolean;
  /** Ada gives a command by its name, in public. */
  command(name: string, text?: string): Promise<void>;
  /** Ada gives a command in the menu of a message. */
  chooseCommand(on: Said, name: string): Promise<void>;
  /** Ada gives the command, with a form if the platform accepts files and options only there. */
  imagine(prompt: string, more?: { files?: readonly GivenFile[]; options?: ImagineOptions }): Promise<void>;
  /** The visible images, oldest first. */
  pictures(): readonly ShownPicture[];
  /** Everything else that the bot shows, oldest first. */
  notes(): readonly Shown[];
  /** The people whom the bot has notified. */
  pings(): readonly unknown[];
  press(on: Shown, action: PressedAction, who?: Person): Promise<void>;
  /** Ada opens the image's form, enters another prompt and submits the form. */
  editPicture(picture: ShownPicture, prompt: string): Promise<void>;
  /**
   * Ada opens the form of a schedule's button, changes the values in it and submits it. Resolves to the error in the
   * form, which then stays open. Undefined if the form was accepted.
   */
  changeSchedule(on: Shown, change: (values: ScheduleFields) => ScheduleFields): Promise<string | undefined>;
  /** Resolves to the result of `find`. It runs after every change. Rejects if there is no result. */
  until<T>(find: () => T | undefined | false, what: string): Promise<T>;
  /** Resolves when the bot is idle and people see everything. */
  idle(): Promise<void>;
  /** Stops the bot and starts it again with the same data. */
  restart(): Promise<void>;
}

/** A source as `Shown` lists it. */
export function toSourceLine({ number, url, label }: SmallLine): string {
  return `${number}. ${url} ${label}`;
}

/** For actions that a platform lacks: the contract's flags keep its tests from calling it. */
export function notHere(): never {
  throw new Error("This platform has no such thing.");
}
