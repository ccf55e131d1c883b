import type { ActionEvent, Author, ReplyAddress } from "./events.ts";

/** The core's answers to questions of an adapter: about pictures, people, models and channels. Types only. */

/** The fields of a picture's form, by their names in `CommandEvent.options`; all are text, as people write it. */
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

/** Finds the turn that writes a message, whichever process does. Rejects when the store does not answer. */
export type FindTurn = (messageId: string) => Promise<string | undefined>;

/** True in a channel where the bot answers everything that people write. Never rejects: not known, it is false. */
export type IsListening = (channel: Pick<ReplyAddress, "platform" | "workspaceId" | "channelId">) => Promise<boolean>;

/** The persona and prompts of a channel; absent: none of its own. Never rejects. */
export type ReadPersona = (
  channel: Pick<ReplyAddress, "platform" | "workspaceId" | "channelId">,
) => Promise<{ persona?: string; prompts?: readonly string[] }>;

/** A person in a conversation with the bot alone, or in one thread of it. */
export interface Viewer extends Pick<ReplyAddress, "platform" | "threadId"> {
  authorId: string;
}

/** Knows, in all processes, which channel people look at beside such a conversation. Never rejects. */
export interface Looking {
  /** Undefined: at none. */
  note(by: Viewer, channelId: string | undefined): Promise<void>;
  /** Resolves to what was told of the thread, else of the conversation. */
  read(by: Viewer): Promise<string | undefined>;
}

/** Somebody who does something, and where. */
export type Actor = Pick<ActionEvent, "author" | "reply">;

/** The choices that a platform's form for pictures offers. */
export interface ImagineMenu {
  ratios: readonly string[];
  sizes: readonly string[];
  maxCount: number;
  maxReferences: number;
  /** The models that draw, the usual one first. */
  listModels(signal: AbortSignal): Promise<readonly string[]>;
  /** A picture's request, to fill its `edit` form; undefined if it is gone or this person cannot see it. */
  describe(pictureId: string, by: Actor, signal: AbortSignal): Promise<DescribedPicture | undefined>;
}

/** A picture as it was asked for. */
export interface DescribedPicture {
  prompt: string;
  options: ImagineOptions;
}

/** The bot's settings where a person talks to it alone, and how much it keeps of that person. */
export interface About {
  model: string;
  persona?: string;
  /** The answer options of the place, in words that end a sentence; absent: as configured. */
  answerOptions?: string;
  kept: {
    /** Their messages and the answers to them, wherever they were said. */
    entries: number;
    conversations: number;
  };
  /** Their use this month, in words that end a sentence. */
  used: string;
}

/** Rejects when the store does not answer. The channel is the person's direct conversation with the bot. */
export type ReadAbout = (
  who: Pick<ReplyAddress, "platform" | "workspaceId" | "channelId"> & { author: Pick<Author, "id" | "former"> },
) => Promise<About>;

/** The messages that an answer comes to on a platform, each in the Markdown that the platform is given. */
export interface Preview {
  /** As people call it. */
  platform: string;
  messages: readonly string[];
}

/** Names of models that the gateway offers for one purpose, in its order. Rejects when they cannot be told. */
export type ListModels = (signal: AbortSignal) => Promise<readonly string[]>;

/** A word that people give the bot, as its help shows it. */
export interface CommandHelp {
  name: string;
  description: string;
}
