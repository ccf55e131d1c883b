/** The data that the server and the page exchange. Both sides share this file, which contains only types. */

import type {
  CommandHelp,
  DescribedPicture,
  GatewayNotice,
  ImagineMenu,
  ImagineOptions,
  Preview,
} from "../../../src/port/catalogue.ts";
import type { Action, PressedAction, ScheduleFields } from "../../../src/port/events.ts";
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
  GatewayNotice,
  ImagineOptions,
  PersonaFields,
  Preview,
  ScheduleFields,
  SetupField,
  SetupStep,
  SetupValues,
  SetupWay,
  Step,
};

export interface ChatRow {
  type: "chat";
  /** The number of the row's last change. All rows share one counter. */
  seq: number;
  id: string;
  title: string;
  createdAt: number;
  isDeleted: boolean;
}

export interface FileRow {
  id: string;
  name: string;
  /** The content type that the file's bytes show. */
  contentType: string;
  sizeBytes: number;
  /** True if the page can show the file. Other files can only be downloaded. */
  isImage: boolean;
  /** In pixels; null if unknown. With the size, the page does not jump while an image loads. */
  width: number | null;
  height: number | null;
  /** Describes an image for people who cannot see it; null if there is no description. */
  altText: string | null;
  /** True if the image is covered until the person uncovers it. */
  isSpoiler: boolean;
}

export type Judgement = Extract<Action, "good" | "bad">;

export interface MessageRow {
  type: "message";
  seq: number;
  id: number;
  chatId: string;
  /** True if the bot wrote it, false if the person did. */
  isBot: boolean;
  /** Id of the message that the bot answers, the same for all messages of one answer. */
  replyTo: number | null;
  /** Created by the browser that sent the message; null for the bot's messages. */
  nonce: string | null;
  text: string;
  isCommand: boolean;
  /** The options from the image form, for a command that came from it. */
  options: ImagineOptions;
  /** True for the bot's note about an answer, which is not part of the answer. */
  isAside: boolean;
  buttons: Button[];
  /** The answer's finished steps in the order of their start. Each title includes the duration. */
  steps: readonly Step[];
  /** The running step, such as "looking up the time, 4 s…", or a summary of all steps: "Used 3 tools, 4.2 s". */
  stepsLine: string;
  judgement: Judgement | null;
  isStreaming: boolean;
  files: FileRow[];
  createdAt: number;
  editedAt: number | null;
  /** Id of a newer message above this one. Set for a status: it reports the end of the work that created both. */
  movedBehind: number | null;
  isDeleted: boolean;
}

export type Row = ChatRow | MessageRow;

export interface Example {
  label: string;
  prompt: string;
}

export interface Hello {
  /** Changes when the server has new tables. The page must then load everything again. */
  epoch: string;
  botName: string;
  commands: CommandHelp[];
  examples: Example[];
  maxFileBytes: number;
  maxFiles: number;
  maxTextLength: number;
  /** In UTF-16 units. */
  maxReasonLength: number;
  canDraw: boolean;
  /** True if the sandbox answers instead of a real model. */
  isSandbox: boolean;
  /** True if other people can open the page too. */
  isShared: boolean;
  hasPreviews: boolean;
  hasPersona: boolean;
}

export interface SetupOffer {
  /** If empty, the page offers no steps. */
  steps: readonly SetupStep[];
  /** The server offers steps only to requests whose `X-Admin-Password` is ADMIN_PASSWORD, URL-encoded. */
  isLocked: boolean;
  /** The file that the server can write; null if it can write no file. */
  target: string | null;
}

export interface Progress {
  chatId: string;
  text: string;
  /** A stop button sends this turn; null if the turn cannot be stopped. */
  turnId: string | null;
}

export interface PictureMenu extends Pick<ImagineMenu, "ratios" | "sizes" | "maxCount" | "maxReferences"> {
  /** The default comes first. Empty if the models are unknown. */
  models: readonly string[];
}

export interface ActBody {
  /** The browser creates one nonce per action, and uses it again when it repeats the request. */
  nonce: string;
}

export interface SendBody extends ActBody {
  chatId: string;
  text: string;
  fileIds: string[];
  options?: ImagineOptions;
  persona?: PersonaFields;
  /** True if the chat does not exist yet and this message creates it. */
  isNewChat: boolean;
}

export interface EditBody extends ActBody {
  text: string;
}

export interface ActionBody extends ActBody {
  action: PressedAction;
  turnId: string;
  reason?: string;
  /** The fields from a schedule's form. */
  fields?: ScheduleFields;
}

export interface StopBody extends ActBody {
  turnId: string;
}
