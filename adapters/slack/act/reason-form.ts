import { z } from "zod";
import { type ActionEvent, MAX_REASON_CHARS } from "../../../src/port/events.ts";
import type { Body } from "../api/wire.ts";
import type { Workspace } from "../api/workspaces.ts";
import { type HandlerResult, NOTHING } from "./acknowledgement.ts";
import { field, form, readMetadata, readTextArea, remark, textArea } from "./forms.ts";
import type { SubmissionPayload } from "./payloads.ts";
import { type HandlerDeps, toEventBase, type UserAction } from "./user-action.ts";

export const REASON_FORM = "reason_form";
const REASON = "reason";
const OPEN_MS = 2_000;

/** Slack stores this invisibly with the form. */
const ratedAnswer = z.object({
  turnId: z.string().min(1),
  /** Slack's id of the person who opened the form. Only this person can submit it. */
  personId: z.string(),
  channelId: z.string(),
  threadTs: z.string().optional(),
  isPrivate: z.boolean(),
});

type RatedAnswer = z.infer<typeof ratedAnswer>;

/** Opens after the rating was counted. */
export interface ReasonForm {
  /** Never rejects; ignores failures. */
  open(workspace: Workspace, triggerId: string, about: RatedAnswer): Promise<void>;
  onSubmit(payload: SubmissionPayload, workspace: Workspace): Promise<HandlerResult>;
}

export function createReasonForm(deps: HandlerDeps): ReasonForm {
  return {
    async open({ teamId }, triggerId, about) {
      try {
        const args = { trigger_id: triggerId, view: toForm(about) };
        await deps.api.call(teamId, "views.open", args, AbortSignal.timeout(OPEN_MS));
      } catch (err) {
        deps.log.info({ err, team: teamId }, "Could not ask why an answer is bad.");
      }
    },
    async onSubmit({ user, view }, workspace) {
      const about = readMetadata(ratedAnswer, view.private_metadata);
      const reason = readTextArea(view.state.values, REASON);
      if (about?.personId !== user.id || reason === "") return NOTHING;
      const { turnId, channelId, threadTs, isPrivate } = about;
      const name = `form:${view.id}:${view.hash}`;
      const userAction: UserAction = { workspace, person: user, channelId, threadTs, name };
      const base = await toEventBase(userAction, { isPrivate }, deps);
      const event: ActionEvent = { kind: "action", ...base, action: "bad", turnId, reason };
      return { events: [event] };
    },
  };
}

function toForm(about: RatedAnswer): Body {
  return form({
    id: REASON_FORM,
    title: "What was wrong?",
    submit: "Send",
    close: "Skip",
    metadata: JSON.stringify(about),
    blocks: [
      field(REASON, "What was wrong with the answer?", textArea(MAX_REASON_CHARS), { optional: true }),
      remark("I've already saved your rating. What you write here goes with it."),
    ],
  });
}
