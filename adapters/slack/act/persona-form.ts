/** The form for the bot's persona in a channel. */
import type { CommandEvent } from "../../../src/port/events.ts";
import { findPersonaProblems, type PersonaFields } from "../../../src/text/persona-fields.ts";
import type { Workspace } from "../api/workspaces.ts";
import { PLATFORM } from "../ids.ts";
import { type HandlerResult, NOTHING } from "./acknowledgement.ts";
import { field, MAX_PROMPT_CHARS, readTextArea, refuseFields, remark, textArea } from "./forms.ts";
import { type OpenedForm, openForm, readSubmission } from "./opened-form.ts";
import type { SubmissionPayload } from "./payloads.ts";
import type { HandlerDeps, UserAction } from "./user-action.ts";

export const PERSONA_FORM = "persona_form";
export const PERSONA = "persona";

export interface PersonaForm {
  /** Tells the person if the form does not open. Never rejects. */
  open(by: UserAction, triggerId: string): Promise<void>;
  onSubmit(payload: SubmissionPayload, workspace: Workspace): Promise<HandlerResult>;
}

export function createPersonaForm(deps: HandlerDeps): PersonaForm {
  return {
    async open(by, triggerId) {
      const { workspace, channelId } = by;
      const set = await deps.readPersona?.({ platform: PLATFORM, workspaceId: workspace.teamId, channelId });
      const values = { persona: set?.persona ?? "", prompts: set?.prompts?.join("\n") ?? "" };
      await openForm(by, triggerId, toForm(values), deps);
    },
    async onSubmit(payload, workspace) {
      const submission = await readSubmission(payload, workspace, deps);
      if (submission === undefined) return NOTHING;
      const { values } = payload.view.state;
      const options = { persona: readTextArea(values, "persona"), prompts: readTextArea(values, "prompts") };
      const problems = findPersonaProblems(options);
      if (Object.keys(problems).length > 0) return refuseFields(problems);
      const event: CommandEvent = { kind: "command", ...submission.base, name: PERSONA, text: "", options };
      return { events: [event] };
    },
  };
}

function toForm(values: PersonaFields): OpenedForm {
  const lines = (name: keyof PersonaFields, label: string) =>
    field(name, label, textArea(MAX_PROMPT_CHARS, values[name]), { optional: true });
  return {
    id: PERSONA_FORM,
    title: "Persona",
    submit: "Save",
    about: "",
    isPrivate: true,
    notOpened: "I couldn't open the form. `/persona show` shows what is set.",
    blocks: [
      lines("persona", "How I should behave in this channel"),
      lines("prompts", "Prompts I should suggest, one per line"),
      remark("Both apply to everyone in this channel. Leave a field empty to clear it."),
    ],
  };
}
