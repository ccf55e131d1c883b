import {
  type APIInteraction,
  type APIMessageApplicationCommandInteraction,
  type APIMessageComponentInteraction,
  type APIModalSubmitInteraction,
  InteractionResponseType,
} from "discord.js";
import type { ImagineMenu } from "../../../src/port/catalogue.ts";
import type { AttachmentRef, CommandEvent } from "../../../src/port/events.ts";
import { type Files, picturesOf } from "../api/files.ts";
import type { MessagePlace } from "../ids.ts";
import type { Acknowledge } from "./acknowledge.ts";
import { askWithin } from "./deadline.ts";
import { type Asked, type InteractionEventDeps, placeOf, toActor, toImagineEvent } from "./events.ts";
import { type FormContent, readForm, toForm } from "./forms.ts";

/** A form has to be the first answer, within Discord's three seconds; what is not known by then is left empty. */
const FORM_MS = 1_500;
const READ_MS = 10_000;
const MAX_REMEMBERED = 200;
const COVERED = "covered";

/** The forms that ask for a picture. What is needed afterwards stands in a form's own id, so it survives a restart. */
export interface PictureForms {
  /** For a picture of the bot, filled in as it was asked for. */
  openEdit(interaction: APIMessageComponentInteraction, pictureId: string): Promise<void>;
  /** For the pictures of any message; false where there are none. */
  openReference(interaction: APIMessageApplicationCommandInteraction): Promise<boolean>;
  /** What a form that was sent asks for; undefined for a form that is not one of these. */
  read(interaction: APIModalSubmitInteraction): ((asked: Asked) => Promise<CommandEvent>) | undefined;
}

export interface PictureFormsDeps extends InteractionEventDeps {
  menu: ImagineMenu;
  files: Files;
  acknowledge: Acknowledge;
}

type Wanted = { basis: string; isCovered: boolean } | MessagePlace;

export function createPictureForms(deps: PictureFormsDeps): PictureForms {
  const { menu, files } = deps;
  /** The pictures that somebody opened a form for: the bot may not be allowed to ask for them. */
  const pictures = new Map<string, AttachmentRef[]>();

  function remember(id: string, refs: AttachmentRef[]): void {
    pictures.set(id, refs);
    const [oldest] = pictures.keys();
    if (pictures.size > MAX_REMEMBERED && oldest !== undefined) pictures.delete(oldest);
  }

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
      await show(interaction, { customId, title: "Edit the picture", models, takesImages: true, ...described }, deps);
    },
    async openReference(interaction) {
      const { target_id: messageId, resolved } = interaction.data;
      const message = resolved.messages[messageId];
      const found = message === undefined ? [] : picturesOf(message);
      if (message === undefined || found.length === 0) return false;
      const wanted = { channelId: message.channel_id, messageId };
      const key = toKey(wanted, toActor(interaction, deps).author.id);
      remember(key, files.toPostedRefs({ ...message, attachments: found, message_snapshots: [] }));
      const customId = toFormId(wanted);
      const models = await listModels(menu);
      await show(interaction, { customId, title: "Draw from this picture", models, takesImages: false }, deps);
      return true;
    },
    read(interaction) {
      const wanted = readFormId(interaction.data.custom_id);
      if (wanted === undefined || !isHere(wanted, interaction)) return undefined;
      return async (asked) => {
        const { prompt, options, uploads } = readForm(interaction);
        const attachments = [
          ...(await readReferences(wanted, toActor(interaction, deps).author.id)),
          ...files.toLinkedRefs(uploads),
        ];
        const more = "basis" in wanted ? { basis: wanted.basis, ...(wanted.isCovered && { spoiler: "true" }) } : {};
        const most = menu.maxReferences - ("basis" in wanted ? 1 : 0);
        const wish = { prompt, options: { ...options, ...more }, attachments: attachments.slice(0, most) };
        return toImagineEvent(asked, wish, deps);
      };
    },
  };
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

/** What a form names may be anything: of messages only those in its own channel are read. */
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
