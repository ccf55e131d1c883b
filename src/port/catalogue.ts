import type { ActionEvent, Author, ReplyAddress, ScheduleFields } from "./events.ts";

/** The core's answers to an adapter's questions about images, people, models and channels. Types only. */

/** The fields of the image form, by their names in `CommandEvent.options`. All values are text, as people write it. */
export interface ImagineOptions {
  ratio?: string;
  size?: string;
  count?: string;
  model?: string;
  /** "true" covers the image until a person chooses to see it. */
  spoiler?: string;
  /** The id of the image whose `edit` button opened the form. That image becomes the first reference. */
  basis?: string;
}

/** Finds the id of the turn that writes a message, in any process. Rejects if the store does not answer. */
export type FindTurn = (messageId: string) => Promise<string | undefined>;

/** True if the bot answers every message in the channel. False if the core does not know. Never rejects. */
export type IsListening = (channel: Pick<ReplyAddress, "platform" | "workspaceId" | "channelId">) => Promise<boolean>;

/** Reads the persona and the prompts of a channel, if it has any. Never rejects. */
export type ReadPersona = (
  channel: Pick<ReplyAddress, "platform" | "workspaceId" | "channelId">,
) => Promise<{ persona?: string; prompts?: readonly string[] }>;

/** A person in a DM with the bot, or in one thread of that DM. */
export interface Viewer extends Pick<ReplyAddress, "platform" | "threadId"> {
  authorId: string;
}

/** Remembers which channel a person has open next to a direct conversation, for all processes. Never rejects. */
export interface Looking {
  /** Undefined: the person has no channel open. */
  note(by: Viewer, channelId: string | undefined): Promise<void>;
  /** Resolves to the channel noted for the thread, or else to the channel noted for the whole DM. */
  read(by: Viewer): Promise<string | undefined>;
}

/** A person, and the place in which the person acts. */
export type Actor = Pick<ActionEvent, "author" | "reply">;

export interface ImagineMenu {
  ratios: readonly string[];
  sizes: readonly string[];
  maxCount: number;
  maxReferences: number;
  /** Lists the models that create images, the default first. */
  listModels(signal: AbortSignal): Promise<readonly string[]>;
  /** Reads an image's request, for its `edit` form. Undefined if the image is gone or this person cannot see it. */
  describe(pictureId: string, by: Actor, signal: AbortSignal): Promise<DescribedPicture | undefined>;
}

export interface DescribedPicture {
  prompt: string;
  options: ImagineOptions;
}

/** The form that changes a schedule. Its methods reject if the store does not answer. */
export interface ScheduleForm {
  /**
   * Resolves to the values that the form opens with. Undefined if this person cannot change the schedule: a press
   * without fields then tells them why.
   */
  read(id: string, by: Actor): Promise<ScheduleFields | undefined>;
  /** Resolves to a sentence for each wrong field. A problem that belongs to no field is at `time`. */
  findProblems(id: string, fields: ScheduleFields, by: Actor): Promise<Partial<ScheduleFields>>;
}

/** The bot's settings in a person's direct conversation, and how much it stores about that person. */
export interface About {
  model: string;
  persona?: string;
  /** The conversation's answer options, in words that can end a sentence. Absent: the operator's options. */
  answerOptions?: string;
  kept: {
    /** How many of the person's messages, and of the answers to them, the bot stores. */
    entries: number;
    conversations: number;
  };
  /** The person's usage this month, in words that can end a sentence. */
  used: string;
}

/** `who` names the person's direct conversation with the bot. Rejects if the store does not answer. */
export type ReadAbout = (
  who: Pick<ReplyAddress, "platform" | "workspaceId" | "channelId"> & { author: Pick<Author, "id"> },
) => Promise<About>;

export interface Preview {
  /** The platform's name, as people use it. */
  platform: string;
  /** The messages, in the Markdown that the platform receives. */
  messages: readonly string[];
  /** CSS that imitates the platform's app, below `[data-platform="…"]` with the platform's name in lower case. */
  style: string;
}

/** Lists the gateway's models for one purpose, in the gateway's order. Rejects if the gateway lists none. */
export type ListModels = (signal: AbortSignal) => Promise<readonly string[]>;

/** A command, as the help shows it, and as platforms show it in lists and forms. */
export interface CommandHelp {
  name: string;
  /** One sentence. */
  description: string;
  /** The arguments that people can write, for example "on, or off". */
  usage?: string;
  /** The fields of the command's form. Empty: the command has no arguments. Absent: the form has one field for text. */
  fields?: readonly CommandField[];
  /** Set if the arguments name people and the command needs their ids. */
  namesPeople?: true;
  /** Platforms also offer the command in their menus, and answer it privately. */
  shortcut?: CommandShortcut;
}

/** A command in a menu. In the menu of a message, it is given in the message's channel, without a text. */
export interface CommandShortcut {
  /** At most 24 characters. */
  title: string;
  /** The command's text in a menu that belongs to no channel. */
  textWithoutChannel: string;
}

/** A field of a command's form. The field's value becomes part of the command's text. */
export interface CommandField {
  name: string;
  description: string;
  /** `person`: people pick a person instead of writing. */
  kind: "text" | "person";
  choices?: ReadonlyArray<{ name: string; value: string }>;
  maxChars?: number;
  /** Set if the platform suggests values while people type. */
  isSuggested?: true;
}

/** A problem of the gateway, in words for the operator. */
export interface GatewayNotice {
  state: string;
  /** Says what is wrong and how to fix it. */
  sentence: string;
}
