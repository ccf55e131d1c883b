import type { ActionEvent, Author, ReplyAddress } from "./events.ts";

/** The core's answers to an adapter's questions about images, people, models and channels. Types only. */

/** The fields of an image's form, by their names in `CommandEvent.options`; all are text, as people write it. */
export interface ImagineOptions {
  ratio?: string;
  size?: string;
  count?: string;
  model?: string;
  /** "true": covered until a person uncovers it. */
  spoiler?: string;
  /** The image whose `edit` opened the form: it becomes the first reference. */
  basis?: string;
}

/** Finds the turn that writes a message, in any process. Rejects if the store does not answer. */
export type FindTurn = (messageId: string) => Promise<string | undefined>;

/** True in a channel in which the bot answers every message. Never rejects: false if unknown. */
export type IsListening = (channel: Pick<ReplyAddress, "platform" | "workspaceId" | "channelId">) => Promise<boolean>;

/** The persona and prompts of a channel; absent if it has none. Never rejects. */
export type ReadPersona = (
  channel: Pick<ReplyAddress, "platform" | "workspaceId" | "channelId">,
) => Promise<{ persona?: string; prompts?: readonly string[] }>;

/** A person in a conversation with the bot alone, or in one thread of it. */
export interface Viewer extends Pick<ReplyAddress, "platform" | "threadId"> {
  authorId: string;
}

/** Knows, across all processes, which channel a person has open next to such a conversation. Never rejects. */
export interface Looking {
  /** Undefined: no channel. */
  note(by: Viewer, channelId: string | undefined): Promise<void>;
  /** Resolves to the channel noted for the thread, else for the conversation. */
  read(by: Viewer): Promise<string | undefined>;
}

/** A person who acts, and the place. */
export type Actor = Pick<ActionEvent, "author" | "reply">;

/** The choices in a platform's form for images. */
export interface ImagineMenu {
  ratios: readonly string[];
  sizes: readonly string[];
  maxCount: number;
  maxReferences: number;
  /** The models that create images, the default first. */
  listModels(signal: AbortSignal): Promise<readonly string[]>;
  /** An image's request, to fill its `edit` form; undefined if it is gone or this person cannot see it. */
  describe(pictureId: string, by: Actor, signal: AbortSignal): Promise<DescribedPicture | undefined>;
}

/** The request for an image. */
export interface DescribedPicture {
  prompt: string;
  options: ImagineOptions;
}

/** The bot's settings in a person's direct conversation, and how much it stores about that person. */
export interface About {
  model: string;
  persona?: string;
  /** The answer options of the place, as the end of a sentence; absent: as configured. */
  answerOptions?: string;
  kept: {
    /** The number of their messages and of the answers to them, in all places. */
    entries: number;
    conversations: number;
  };
  /** Their use this month, as the end of a sentence. */
  used: string;
}

/** Rejects if the store does not answer. The channel is the person's direct conversation with the bot. */
export type ReadAbout = (
  who: Pick<ReplyAddress, "platform" | "workspaceId" | "channelId"> & { author: Pick<Author, "id"> },
) => Promise<About>;

/** How an answer looks on a platform. */
export interface Preview {
  /** Its name, as people use it. */
  platform: string;
  /** Each one in the Markdown that the platform gets. */
  messages: readonly string[];
  /** CSS that draws them like the platform's app, below `[data-platform="…"]` with the name in lower case. */
  style: string;
}

/** Names of models that the gateway offers for one purpose, in its order. Rejects if the gateway does not list them. */
export type ListModels = (signal: AbortSignal) => Promise<readonly string[]>;

/** A command, as the help, a platform's list of commands and its forms show it. */
export interface CommandHelp {
  name: string;
  /** One sentence. */
  description: string;
  /** The arguments that people can write: "on, or off". */
  usage?: string;
  /** The fields of its form, on platforms with forms. Empty: it has no arguments. Absent: one field for text. */
  fields?: readonly CommandField[];
  /** Its arguments name people, and it needs their ids. */
  namesPeople?: true;
}

/** A field of a command's form. Its value becomes a part of the command's text. */
export interface CommandField {
  name: string;
  description: string;
  /** `person`: a person to pick. */
  kind: "text" | "person";
  choices?: ReadonlyArray<{ name: string; value: string }>;
  maxChars?: number;
  /** The platform suggests values while people type. */
  isSuggested?: true;
}

/** A problem of the gateway, as the operator sees it. */
export interface GatewayNotice {
  state: string;
  /** Says what is wrong and how to fix it. */
  sentence: string;
}
