import {
  type APIAttachment,
  type APIInteraction,
  type APILabelComponent,
  type APIMessageApplicationCommandInteraction,
  type APIMessageComponentInteraction,
  type APIModalInteractionResponseCallbackData,
  type APIModalSubmitInteraction,
  InteractionResponseType,
} from "discord.js";
import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import { askWithin } from "../../../src/concurrency/deadlines.ts";
import type { ImagineMenu, ImagineOptions } from "../../../src/port/catalogue.ts";
import type { AttachmentRef, CommandEvent } from "../../../src/port/events.ts";
import { truncate } from "../../../src/text/truncate.ts";
import { type Files, picturesOf } from "../api/files.ts";
import type { MessagePlace } from "../ids.ts";
import { IMAGINE } from "../install/slash-commands.ts";
import type { Acknowledge } from "./acknowledgement.ts";
import { FORM_MS, toSelectField, toTextField, toUploadField } from "./forms.ts";
import { type InteractionEventDeps, type PendingInteraction, placeOf, toActor, toEventBase } from "./user-action.ts";

const READ_MS = 10_000;
const MAX_REMEMBERED = 200;
const COVERED = "covered";

/** The forms that ask for an image. Each form's id carries its state, so it survives a restart. */
export interface PictureForms {
  /** Opens the form for one of the bot's images, filled in with its prompt and options. */
  openEdit(interaction: APIMessageComponentInteraction, pictureId: string): Promise<void>;
  /** Opens the form for the images of any message. Resolves to false if the message has none. */
  openReference(interaction: APIMessageApplicationCommandInteraction): Promise<boolean>;
  /** Undefined for a form that does not ask for an image. */
  read(interaction: APIModalSubmitInteraction): ((pending: PendingInteraction) => Promise<CommandEvent>) | undefined;
}

export interface PictureFormsDeps extends InteractionEventDeps {
  menu: ImagineMenu;
  files: Files;
  acknowledge: Acknowledge;
}

type Wanted = { basis: string; isCovered: boolean } | MessagePlace;

export function createPictureForms(deps: PictureFormsDeps): PictureForms {
  const { menu, files } = deps;
  /** The images that open forms refer to: the bot may lack the permission to read their messages again. */
  const pictures = new BoundedMap<string, AttachmentRef[]>(MAX_REMEMBERED);

  async function readReferences(wanted: Wanted, personId: string): Promise<AttachmentRef[]> {
    if ("basis" in wanted) return [];
    const known = pictures.get(toKey(wanted, personId));
    return known ?? (await files.readPictures(wanted, AbortSignal.timeout(READ_MS)));
  }

  return {
    async openEdit(interaction, pictureId) {
      const by = toActor(interaction, deps);
      const [models, described] = await Promise.all([
        listModels(menu),
        askWithin(FORM_MS, (signal) => menu.describe(pictureId, by, signal), undefined),
      ]);
      const customId = toFormId({ basis: pictureId, isCovered: described?.options.spoiler === "true" });
      await show(interaction, { customId, title: "Edit image", models, takesImages: true, ...described }, deps);
    },
    async openReference(interaction) {
      const { target_id: messageId, resolved } = interaction.data;
      const message = resolved.messages[messageId];
      const found = message === undefined ? [] : picturesOf(message);
      if (message === undefined || found.length === 0) return false;
      const wanted = { channelId: message.channel_id, messageId };
      const key = toKey(wanted, toActor(interaction, deps).author.id);
      pictures.set(key, files.toPostedRefs({ ...message, attachments: found, message_snapshots: [] }));
      const customId = toFormId(wanted);
      const models = await listModels(menu);
      await show(interaction, { customId, title: "Use as reference", models, takesImages: false }, deps);
      return true;
    },
    read(interaction) {
      const wanted = readFormId(interaction.data.custom_id);
      if (wanted === undefined || !isHere(wanted, interaction)) return undefined;
      return async (pending) => {
        const { prompt, options, uploads } = readForm(interaction);
        const attachments = [
          ...(await readReferences(wanted, toActor(interaction, deps).author.id)),
          ...files.toLinkedRefs(uploads),
        ];
        const more = "basis" in wanted ? { basis: wanted.basis, ...(wanted.isCovered && { spoiler: "true" }) } : {};
        const most = menu.maxReferences - ("basis" in wanted ? 1 : 0);
        const request = { prompt, options: { ...options, ...more }, attachments: attachments.slice(0, most) };
        return toImagineEvent(pending, request, deps);
      };
    },
  };
}

export interface PictureRequest {
  prompt: string;
  /** Keyed like `ImagineOptions`. */
  options: Readonly<Record<string, string>>;
  attachments: CommandEvent["attachments"] & object;
}

/** Turns a request for an image, from any form or menu, into the command `/imagine`. */
export function toImagineEvent(
  pending: PendingInteraction,
  { prompt, options, attachments }: PictureRequest,
  deps: InteractionEventDeps,
): CommandEvent {
  return { kind: "command", ...toEventBase(pending, deps), name: IMAGINE, text: prompt, options, attachments };
}

function listModels(menu: ImagineMenu): Promise<readonly string[]> {
  return askWithin(FORM_MS, menu.listModels, []);
}

type Opened = Pick<FormContent, "customId" | "title" | "models" | "takesImages"> &
  Partial<Pick<FormContent, "prompt" | "options">>;

async function show(interaction: APIInteraction, form: Opened, { menu, acknowledge }: PictureFormsDeps): Promise<void> {
  const data = toForm({ prompt: "", options: {}, ...form, menu });
  await acknowledge(interaction, { type: InteractionResponseType.Modal, data });
}

/** A client can put any message into a form's id, so this checks that the message is in the form's channel. */
function isHere(wanted: Wanted, interaction: APIModalSubmitInteraction): boolean {
  return "basis" in wanted || wanted.channelId === placeOf(interaction).channelId;
}

function toKey({ channelId, messageId }: MessagePlace, personId: string): string {
  return [channelId, messageId, personId].join(":");
}

function toFormId(wanted: Wanted): string {
  if ("basis" in wanted) return ["form", "edit", wanted.basis, ...(wanted.isCovered ? [COVERED] : [])].join(":");
  return ["form", "reference", wanted.channelId, wanted.messageId].join(":");
}

function readFormId(customId: string): Wanted | undefined {
  const [form, kind, first = "", second = ""] = customId.split(":");
  if (form !== "form" || first === "") return undefined;
  if (kind === "edit") return { basis: first, isCovered: second === COVERED };
  return kind === "reference" && second !== "" ? { channelId: first, messageId: second } : undefined;
}

const MAX_PROMPT = 4_000;
const PROMPT = "prompt";
const IMAGES = "images";
const CHOSEN = ["ratio", "size", "count", "model"] as const satisfies (keyof ImagineOptions)[];

/** The initial values of an image form, which can have at most five fields. */
export interface FormContent {
  customId: string;
  title: string;
  menu: Pick<ImagineMenu, "ratios" | "sizes" | "maxCount" | "maxReferences">;
  /** If empty, the form does not ask for a model. */
  models: readonly string[];
  prompt: string;
  options: ImagineOptions;
  /** If true, the form asks for more reference images instead of the number of images. */
  takesImages: boolean;
}

function toForm(content: FormContent): APIModalInteractionResponseCallbackData {
  const { customId, title, menu, models, options, takesImages } = content;
  const counts = Array.from({ length: menu.maxCount }, (_, index) => String(index + 1));
  const components = [
    toPromptField(content.prompt),
    ...(takesImages ? toUploadField("More reference images", IMAGES, menu.maxReferences - 1) : []),
    ...toSelectField("Aspect ratio", "ratio", menu.ratios, options.ratio),
    ...toSelectField("Size", "size", menu.sizes, options.size),
    ...(takesImages ? [] : toSelectField("How many", "count", counts, options.count)),
    ...toSelectField("Model", "model", models, options.model),
  ];
  return { custom_id: customId, title, components };
}

export interface Filled {
  prompt: string;
  options: Record<string, string>;
  uploads: APIAttachment[];
}

function readForm({ data }: APIModalSubmitInteraction): Filled {
  const values = new Map<string, string[]>();
  for (const holder of data.components) {
    const field = ("component" in holder ? holder.component : undefined) as Submitted | undefined;
    if (field !== undefined) values.set(field.custom_id, field.values ?? [field.value ?? ""]);
  }
  const chosen = CHOSEN.flatMap((name) => {
    const [value] = values.get(name) ?? [];
    return value ? [[name, value] as const] : [];
  });
  const uploads = (values.get(IMAGES) ?? []).flatMap((id) => data.resolved?.attachments?.[id] ?? []);
  return { prompt: values.get(PROMPT)?.[0]?.trim() ?? "", options: Object.fromEntries(chosen), uploads };
}

interface Submitted {
  custom_id: string;
  value?: string;
  values?: string[];
}

function toPromptField(prompt: string): APILabelComponent {
  const value = truncate(prompt, MAX_PROMPT, "");
  const label = "What the image should show";
  return toTextField({ name: PROMPT, label, maxLength: MAX_PROMPT, value, isRequired: true });
}
