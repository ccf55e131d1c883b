/** The messages between server and page. Types only, in one place for both sides. */

import type {
  CommandHelp,
  DescribedPicture,
  ImagineMenu,
  ImagineOptions,
  Preview,
} from "../../../src/port/catalogue.ts";
import type { Action, PressedAction } from "../../../src/port/events.ts";
import type { Finding } from "../../../src/port/finding.ts";
import type { EnvFile, SetupField, SetupStep, SetupValues, SetupWay } from "../../../src/port/setup.ts";
import type { Button, Step } from "../../../src/port/sink.ts";
import type { PersonaFields } from "../../../src/text/persona-fields.ts";

export type {
  Button,
  CommandHelp,
  DescribedPicture,
  EnvFile,
  Finding,
  ImagineOptions,
  PersonaFields,
  Preview,
  SetupField,
  SetupStep,
  SetupValues,
  SetupWay,
  Step,
};

/** A direct chat, a channel, or a thread of a channel, which is named by its first message. */
export interface Place {
  channelId: string;
  threadId: number | null;
}

/** Anybody one can speak as at the page. */
export interface PersonRow {
  type: "person";
  /** Number of the row's last change; one counter for all rows. */
  seq: number;
  id: string;
  name: string;
}

export type ChannelKind = "chat" | "channel";

/** A direct chat with the bot, or a channel of several people. */
export interface ChannelRow {
  type: "channel";
  seq: number;
  id: string;
  kind: ChannelKind;
  title: string;
  createdAt: number;
  /** With everything that was said in it. */
  isDeleted: boolean;
}

export interface FileRow {
  id: string;
  name: string;
  /** Sniffed from the bytes. */
  contentType: string;
  sizeBytes: number;
  /** May be shown in the page; everything else is only ever downloaded. */
  isImage: boolean;
  /** Pixels, null where unknown. They keep the page from jumping while a picture loads. */
  width: number | null;
  height: number | null;
  /** Describes a picture for those who cannot see it; null where nobody did. */
  altText: string | null;
  /** Covered until somebody wants to see it. */
  isSpoiler: boolean;
}

export type Judgement = Extract<Action, "good" | "bad">;

export interface MessageRow extends Place {
  type: "message";
  seq: number;
  id: number;
  /** Null is the bot. */
  authorId: string | null;
  /** The message that an answer of the bot answers; all messages of one answer have the same. */
  replyTo: number | null;
  /** Made by the browser that sent it; null for the bot's. */
  nonce: string | null;
  text: string;
  isCommand: boolean;
  /** The choices of the picture form, of a command that came from it. */
  options: ImagineOptions;
  /** Only this person is shown the message. */
  visibleTo: string | null;
  buttons: Button[];
  /** Done on the way to an answer, in the order they began, each with its time in its title. */
  steps: readonly Step[];
  /** The running step, "looking up the time, 4 s…", or else a summary of all: "Used 3 tools, 4.2 s". */
  stepsLine: string;
  /** People's feedback on an answer, by their id. */
  judgements: Readonly<Record<string, Judgement>>;
  /** More text is coming. */
  isStreaming: boolean;
  files: FileRow[];
  createdAt: number;
  editedAt: number | null;
  /** The newer message that it stands behind: a status that tells how the work ended which brought that one. */
  movedBehind: number | null;
  /** A deleted row has neither text nor files. */
  isDeleted: boolean;
}

export type Row = PersonRow | ChannelRow | MessageRow;

export interface Example {
  label: string;
  prompt: string;
}

/** First event of every stream. */
export interface Hello {
  /** Changes when the tables are new: then the page has to load everything again. */
  epoch: string;
  botName: string;
  commands: CommandHelp[];
  examples: Example[];
  maxFileBytes: number;
  maxFiles: number;
  maxTextLength: number;
  /** The longest reason for calling an answer bad, in UTF-16 units. */
  maxReasonLength: number;
  /** There is a form for pictures. */
  canDraw: boolean;
  /** No real model answers. */
  isSandbox: boolean;
  /** Answers can be looked at as other platforms show them. */
  hasPreviews: boolean;
  /** There is a form for the bot's persona in a channel. */
  hasPersona: boolean;
}

/** The trouble of the gateway that answers: in a few words, and in a sentence with the cure. */
export interface GatewayNotice {
  state: string;
  sentence: string;
}

/** The steps of the setup that are offered. */
export interface SetupOffer {
  /** Empty: nothing is offered. */
  steps: readonly SetupStep[];
  /** Steps are offered to requests whose `X-Admin-Password` is ADMIN_PASSWORD, encoded as in a URL. */
  isLocked: boolean;
  /** The file that can be written; null where none can. */
  target: string | null;
}

/** The bot is doing this before there is text. */
export interface Progress extends Place {
  text: string;
  /** A stop names this turn to end it; null where it cannot be stopped. */
  turnId: string | null;
}

/** The choices of the picture form. */
export interface PictureMenu extends Pick<ImagineMenu, "ratios" | "sizes" | "maxCount" | "maxReferences"> {
  /** The usual one first; empty when they are not known at the moment. */
  models: readonly string[];
}

/** A person does something. */
export interface DeleteBody {
  /** Made by the browser, the same when it is sent again. */
  nonce: string;
  authorId: string;
}

export interface SendBody extends DeleteBody, Place {
  text: string;
  fileIds: string[];
  /** The choices of the picture form, when it was filled in. */
  options?: ImagineOptions;
  /** The fields of the form for a persona, when it was filled in. */
  persona?: PersonaFields;
  /** The chat does not exist yet and is made with this message. */
  isNewChat: boolean;
}

export interface EditBody extends DeleteBody {
  text: string;
}

export interface ActionBody extends DeleteBody {
  action: PressedAction;
  turnId: string;
  /** Why an answer is `bad`. */
  reason?: string;
}

export interface StopBody extends DeleteBody {
  turnId: string;
}
