/** The form that asks why an answer is bad. */
import { type ActionEvent, MAX_REASON_CHARS } from "../../../src/port/events.ts";
import type { Workspace } from "../api/workspaces.ts";
import { type HandlerResult, NOTHING } from "./acknowledgement.ts";
import { field, readTextArea, remark, textArea } from "./forms.ts";
import { openForm, readSubmission } from "./opened-form.ts";
import type { SubmissionPayload } from "./payloads.ts";
import type { HandlerDeps, UserAction } from "./user-action.ts";

export const REASON_FORM = "reason_form";
const REASON = "reason";

/** Asks why an answer was rated bad. Opens after the rating was counted. */
export interface ReasonForm {
  /** Never rejects; ignores failures. */
  open(by: UserAction, triggerId: string, rated: { turnId: string; isPrivate: boolean }): Promise<void>;
  onSubmit(payload: SubmissionPayload, workspace: Workspace): Promise<HandlerResult>;
}

export function createReasonForm(deps: HandlerDeps): ReasonForm {
  return {
    open(by, triggerId, { turnId, isPrivate }) {
      const blocks = [
        field(REASON, "What was wrong with the answer?", textArea(MAX_REASON_CHARS), { optional: true }),
        remark("I've already saved your rating. What you write here goes with it."),
      ];
      const texts = { title: "What was wrong?", submit: "Send", close: "Skip" };
      return openForm(by, triggerId, { id: REASON_FORM, ...texts, about: turnId, isPrivate, blocks }, deps);
    },
    async onSubmit(payload, workspace) {
      const reason = readTextArea(payload.view.state.values, REASON);
      const submission = reason === "" ? undefined : await readSubmission(payload, workspace, deps);
      if (submission === undefined) return NOTHING;
      const { base, about: turnId } = submission;
      const event: ActionEvent = { kind: "action", ...base, action: "bad", turnId, reason };
      return { events: [event] };
    },
  };
}
