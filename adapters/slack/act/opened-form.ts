/** Opens forms, and finds out from which channel a submitted form was opened. */
import { z } from "zod";
import type { EventBase } from "../../../src/port/events.ts";
import type { Workspace } from "../api/workspaces.ts";
import { type FormContent, form, readMetadata } from "./forms.ts";
import type { SubmissionPayload } from "./payloads.ts";
import { type HandlerDeps, toEventBase, type UserAction } from "./user-action.ts";

/** Slack allows three seconds to open a form, including all lookups. */
export const OPEN_MS = 2_000;

/** Slack stores this invisibly with the form, so every process can handle the submission, also after a restart. */
const opening = z.object({
  /** Slack's id of the person who opened the form. Only this person can submit it. */
  personId: z.string(),
  channelId: z.string(),
  threadTs: z.string().optional(),
  responseUrl: z.string().optional(),
  isOnEphemeral: z.boolean().optional(),
  /** True if only this person sees the result. */
  isPrivate: z.boolean(),
  /** The id of the answer or the schedule that the form is about; "": it is about the channel. */
  about: z.string(),
});

export interface OpenedForm extends Omit<FormContent, "metadata"> {
  isPrivate: boolean;
  about: string;
  /** Told to the person if the form does not open. */
  notOpened?: string;
}

/** Opens a form for the person who acted. Never rejects. */
export async function openForm(
  by: UserAction,
  triggerId: string,
  { isPrivate, about, notOpened, ...content }: OpenedForm,
  deps: HandlerDeps,
): Promise<void> {
  const { workspace, person, channelId, threadTs, responseUrl, isOnEphemeral } = by;
  const place = { channelId, threadTs, responseUrl, isOnEphemeral };
  const opened: z.infer<typeof opening> = { personId: person.id, ...place, isPrivate, about };
  const view = form({ ...content, metadata: JSON.stringify(opened) });
  try {
    const args = { trigger_id: triggerId, view };
    await deps.api.call(workspace.teamId, "views.open", args, AbortSignal.timeout(OPEN_MS));
  } catch (err) {
    deps.log.info({ err, team: workspace.teamId, form: content.id }, "Could not open a form.");
    if (notOpened !== undefined) await deps.tellPerson(by, notOpened).catch(() => {});
  }
}

export interface Submission {
  about: string;
  /** The fields of the event that the submission becomes. */
  base: EventBase;
}

/** Undefined if another person or an older version opened the form. Takes at most a second. */
export async function readSubmission(
  { user, view }: SubmissionPayload,
  workspace: Workspace,
  deps: HandlerDeps,
): Promise<Submission | undefined> {
  const opened = readMetadata(opening, view.private_metadata);
  if (opened?.personId !== user.id) return undefined;
  const { personId: _, isPrivate, about, ...place } = opened;
  const name = `form:${view.id}:${view.hash}`;
  const by: UserAction = { workspace, person: user, ...place, name };
  return { about, base: await toEventBase(by, { isPrivate }, deps) };
}
