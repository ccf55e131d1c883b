/** The form that changes a schedule. */
import { askWithin } from "../../../src/concurrency/deadlines.ts";
import { type ActionEvent, MAX_SCHEDULE_CHARS, type ScheduleFields } from "../../../src/port/events.ts";
import type { Workspace } from "../api/workspaces.ts";
import { type HandlerResult, NOTHING } from "./acknowledgement.ts";
import { field, readTextArea, refuseFields, remark, textArea, textLine } from "./forms.ts";
import { openForm, readSubmission } from "./opened-form.ts";
import type { SubmissionPayload } from "./payloads.ts";
import type { HandlerDeps, UserAction } from "./user-action.ts";

/** `callback_id` of the form that changes a schedule. */
export const SCHEDULE_FORM = "schedule_form";
/** Longest wait for the store. Slack waits three seconds for the acknowledgement, including all lookups. */
const ASK_MS = 800;

/** The form for a schedule's time and task, filled in with the current ones. */
export interface ScheduleForms {
  /** Opens the form for a press of its button. If the form cannot be filled in, the press itself becomes the event. */
  onPress(event: ActionEvent, by: UserAction, triggerId: string): Promise<HandlerResult>;
  onSubmit(payload: SubmissionPayload, workspace: Workspace): Promise<HandlerResult>;
}

export function createScheduleForms(deps: HandlerDeps): ScheduleForms {
  return {
    async onPress(event, by, triggerId) {
      const { turnId: about, reply } = event;
      const values = await askWithin(ASK_MS, async () => deps.scheduleForm?.read(about, event), undefined);
      if (values === undefined) return { events: [event] };
      const opened = { ...toContent(values), about, isPrivate: reply.visibleTo !== undefined };
      return { events: [], afterwards: () => openForm(by, triggerId, opened, deps) };
    },
    async onSubmit(payload, workspace) {
      const submission = await readSubmission(payload, workspace, deps);
      if (submission === undefined) return NOTHING;
      const { base, about } = submission;
      const { values } = payload.view.state;
      const fields = { time: readTextArea(values, "time"), task: readTextArea(values, "task") };
      // If the store is late, the bot says later what is wrong.
      const problems = await askWithin(ASK_MS, async () => deps.scheduleForm?.findProblems(about, fields, base), {});
      if (problems !== undefined && Object.keys(problems).length > 0) return refuseFields(problems);
      const event: ActionEvent = { kind: "action", ...base, action: "reschedule", turnId: about, fields };
      return { events: [event] };
    },
  };
}

function toContent({ time, task }: ScheduleFields) {
  return {
    id: SCHEDULE_FORM,
    title: "Schedule",
    submit: "Continue",
    notOpened: "I couldn't open the form. Press the button again.",
    blocks: [
      field("time", "When", textLine(MAX_SCHEDULE_CHARS.time, time)),
      field("task", "What I should do then", textArea(MAX_SCHEDULE_CHARS.task, task)),
      remark("I'll show you what I understood. Nothing changes until you confirm it."),
    ],
  };
}
