import { askWithin } from "../../../src/concurrency/deadlines.ts";
import type { Actor, ImagineMenu, ImagineOptions } from "../../../src/port/catalogue.ts";
import type { AttachmentRef, CommandEvent } from "../../../src/port/events.ts";
import { truncate } from "../../../src/text/truncate.ts";
import { readAttachmentId } from "../api/files.ts";
import { type Body, readText, toBodies, toBody } from "../api/wire.ts";
import type { Workspace } from "../api/workspaces.ts";
import { describeAbsence, findPresence, isMember, NOT_HERE } from "../hear/access.ts";
import { PLATFORM } from "../ids.ts";
import { escapeMarkup } from "../write/markdown.ts";
import type { HandlerResult } from "./acknowledgement.ts";
import { IMAGINE } from "./commands.ts";
import {
  field,
  form,
  MAX_PROMPT_CHARS,
  plain,
  readElement,
  readTextArea,
  refuseFields,
  remark,
  select,
  textArea,
  VALUE,
} from "./forms.ts";
import { OPEN_MS } from "./opened-form.ts";
import type { SubmissionPayload } from "./payloads.ts";
import { type HandlerDeps, toActor, toEventBase, type UserAction, type UserContext } from "./user-action.ts";

export const IMAGINE_FORM = "imagine_form";
const PROMPT = "prompt";
const WHERE = "where";
const REFERENCES = "references";
/** Most files that Slack accepts in one field, at ten megabytes each. */
const MAX_FILES = 10;
const MAX_METADATA_CHARS = 3_000;
const MAX_NAME_CHARS = 60;
const FILE_TYPES = ["png", "jpg", "jpeg", "gif", "webp", "heic"];
/** Timeout for loading the form's values, because a trigger can open a form for only three seconds. */
const FILL_MS = 800;
const MAX_KEPT_MODELS = 100;
const NOT_OPENED =
  "I couldn't open the form. Try again, or write what the image should show after the command: `/imagine a lighthouse in the fog`";
const NOT_YOURS = "Someone else opened this form, or I've been updated since. Open it again.";

/** The form's state until its submission. Slack stores it invisibly with the form. */
export interface FormContext {
  /** Absent: the form asks where to post the image. */
  channelId?: string | undefined;
  threadTs?: string | undefined;
  responseUrl?: string | undefined;
  /** Slack's id of the person who opened the form. Only this person can submit it. */
  personId: string;
  isPrivate?: boolean | undefined;
  basis?: string | undefined;
  references: readonly AttachmentRef[];
}

export interface Prefill {
  prompt: string;
  options: ImagineOptions;
  models: readonly string[];
}

export function toImagineForm(menu: ImagineMenu, context: FormContext, { prompt, options, models }: Prefill): Body {
  const freeFiles = Math.min(MAX_FILES, menu.maxReferences - context.references.length - (context.basis ? 1 : 0));
  const counts = Array.from({ length: menu.maxCount }, (_, index) => String(index + 1));
  const blocks = [
    field(PROMPT, "What should the image show?", {
      ...textArea(MAX_PROMPT_CHARS, prompt),
      placeholder: plain("A lighthouse in the fog, as a woodcut"),
    }),
    ...describeReferences(context),
    ...(freeFiles > 0 ? [toFileField(freeFiles)] : []),
    ...choice("ratio", "Shape", menu.ratios, options.ratio),
    ...choice("size", "Size", menu.sizes, options.size),
    ...choice("count", "How many", counts, options.count),
    ...choice("model", "Model", models, options.model),
    ...(context.channelId === undefined ? [toPlaceField()] : []),
  ];
  return form({
    id: IMAGINE_FORM,
    title: "Create an image",
    submit: "Create",
    metadata: writeContext(context),
    blocks,
  });
}

/** The values of a submitted form. Files are in Slack's format. */
export interface FormValues {
  prompt: string;
  options: ImagineOptions;
  files: readonly Body[];
  channelId?: string;
}

function readImagineForm(values: SubmissionPayload["view"]["state"]["values"]): FormValues {
  const chosen = (name: string) => readText(toBody(readElement(values, name)["selected_option"])["value"]);
  const [ratio, size, count, model] = ["ratio", "size", "count", "model"].map(chosen);
  const channelId = readText(readElement(values, WHERE)["selected_conversation"]);
  return {
    prompt: readTextArea(values, PROMPT),
    options: { ...(ratio && { ratio }), ...(size && { size }), ...(count && { count }), ...(model && { model }) },
    files: toBodies(readElement(values, REFERENCES)["files"]),
    ...(channelId !== undefined && { channelId }),
  };
}

/** Packs the state with short keys, because Slack stores only 3,000 characters. Drops references that do not fit. */
function writeContext({ references, isPrivate, ...context }: FormContext): string {
  const { channelId: c, threadTs: t, responseUrl: u, personId: p, basis: b } = context;
  const pack = (kept: readonly AttachmentRef[]) => {
    const r = kept.map(({ id, name, sizeBytes }) => [id, truncate(name, MAX_NAME_CHARS, ""), sizeBytes]);
    return JSON.stringify({ c, t, u, p, o: isPrivate === true ? "only" : undefined, b, r });
  };
  for (let count = references.length; count > 0; count--) {
    const packed = pack(references.slice(0, count));
    if (packed.length <= MAX_METADATA_CHARS) return packed;
  }
  return pack([]);
}

/** Throws if `writeContext` did not create the metadata. */
export function readContext(metadata: string): FormContext {
  type Packed = Partial<Record<"c" | "t" | "u" | "p" | "o" | "b", string>> & { r: [string, string, number][] };
  const { c, t, u, p = "", o, b, r } = JSON.parse(metadata) as Packed;
  const references = r.map(([id, name, sizeBytes]) => ({ platform: PLATFORM, id, name, sizeBytes }));
  return { channelId: c, threadTs: t, responseUrl: u, personId: p, isPrivate: o === "only", basis: b, references };
}

function describeReferences({ references, basis }: FormContext): Body[] {
  const names = references.map(({ name }) => escapeMarkup(name));
  const all = [...(basis === undefined ? [] : ["the image itself"]), ...names];
  return all.length === 0 ? [] : [remark(`I'll start from ${all.join(", ")}.`)];
}

function toFileField(maxFiles: number): Body {
  const element = { type: "file_input", filetypes: FILE_TYPES, max_files: maxFiles };
  return field(REFERENCES, "Reference images", element, { optional: true });
}

function toPlaceField(): Body {
  const element = { type: "conversations_select", default_to_current_conversation: true };
  return field(WHERE, "Where should I post it?", element);
}

function choice(name: string, label: string, values: readonly string[], chosen: string | undefined): Body[] {
  const element = select(VALUE, values, { placeholder: "No preference", chosen });
  return element === undefined ? [] : [field(name, label, element, { optional: true })];
}

export interface ImagineForms {
  /** Tells the person if the form does not open. Never rejects. */
  open(by: UserContext, triggerId: string, context: Opened): Promise<void>;
  onSubmit(payload: SubmissionPayload, workspace: Workspace): Promise<HandlerResult>;
}

type Opened = Omit<FormContext, "channelId" | "threadTs" | "personId">;

export function createImagineForms(menu: ImagineMenu, deps: HandlerDeps): ImagineForms {
  async function fill({ basis }: FormContext, by: Actor) {
    const [described, models] = await Promise.all([
      askWithin(
        FILL_MS,
        async (signal) => (basis === undefined ? undefined : menu.describe(basis, by, signal)),
        undefined,
      ),
      askWithin(FILL_MS, menu.listModels, undefined),
    ]);
    return { prompt: described?.prompt ?? "", options: described?.options ?? {}, models: models ?? [] };
  }

  async function open(by: UserContext, triggerId: string, opened: Opened): Promise<void> {
    const { workspace, person, channelId, threadTs } = by;
    const context: FormContext = { ...opened, channelId, threadTs, personId: person.id };
    try {
      const filled = await fill(context, toActor(by));
      const view = toImagineForm(menu, context, { ...filled, models: filled.models.slice(0, MAX_KEPT_MODELS) });
      await deps.api.call(
        workspace.teamId,
        "views.open",
        { trigger_id: triggerId, view },
        AbortSignal.timeout(OPEN_MS),
      );
    } catch (error) {
      deps.log.warn({ err: error }, "Could not open the form for a picture.");
      // Posts the notice outside the thread, because the thread may not exist yet.
      const telling = deps.tellPerson({ ...by, threadTs: undefined, responseUrl: context.responseUrl }, NOT_OPENED);
      await telling.catch((err: unknown) =>
        deps.log.warn({ err }, "Could not tell the user that a form did not open."),
      );
    }
  }

  async function onSubmit({ user, view }: SubmissionPayload, workspace: Workspace): Promise<HandlerResult> {
    const context = readContext(view.private_metadata);
    const { prompt, options, files, channelId = context.channelId } = readImagineForm(view.state.values);
    if (context.personId !== user.id) return refuseFields({ [PROMPT]: NOT_YOURS });
    if (prompt === "") return refuseFields({ [PROMPT]: "Say in a few words what the image should show." });
    if (channelId === undefined) return refuseFields({ [WHERE]: "Choose where I should post the image." });
    const isChosen = context.channelId === undefined;
    const [isHere, presence] = await Promise.all([
      isMember(workspace, channelId, deps),
      // The person is in the form's own channel, but perhaps not in a channel that they selected in the form.
      isChosen ? findPresence(workspace, channelId, user.id, deps) : { isThere: true },
    ]);
    if (!isHere) return refuseFields({ [isChosen ? WHERE : PROMPT]: NOT_HERE.replaceAll("`", "") });
    if (!presence.isThere) return refuseFields({ [WHERE]: describeAbsence(presence) });
    const { threadTs, responseUrl, basis, isPrivate = false } = context;
    const isOurs = ({ id }: AttachmentRef) => readAttachmentId(id)?.teamId === workspace.teamId;
    const references = context.references.filter(isOurs);
    const name = `form:${view.id}:${view.hash}`;
    const userAction: UserAction = { workspace, person: user, channelId, threadTs, responseUrl, name };
    const event: CommandEvent = {
      kind: "command",
      ...(await toEventBase(userAction, { isPrivate }, deps)),
      name: IMAGINE,
      text: prompt,
      attachments: [...references, ...deps.toAttachments(workspace, files)],
      options: { ...options, ...(basis !== undefined && { basis }) },
    };
    return { events: [event] };
  }

  return { open, onSubmit };
}
