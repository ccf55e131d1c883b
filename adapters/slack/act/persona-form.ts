import { z } from "zod";
import type { CommandEvent } from "../../../src/port/events.ts";
import { findPersonaProblems, type PersonaFields } from "../../../src/text/persona-fields.ts";
import type { Body } from "../api/wire.ts";
import type { Workspace } from "../api/workspaces.ts";
import { PLATFORM } from "../ids.ts";
import { type HandlerResult, NOTHING } from "./acknowledgement.ts";
import { field, form, MAX_PROMPT_CHARS, readMetadata, readTextArea, remark, textArea } from "./forms.ts";
import type { SubmissionPayload } from "./payloads.ts";
import { type HandlerDeps, toEventBase, type UserAction } from "./user-action.ts";

export const PERSONA_FORM = "persona_form";
export const PERSONA = "persona";
/** Slack allows three seconds to open a form, including all look-ups. */
const OPEN_MS = 2_000;

/** Slack stores this invisibly with the form. */
const opened = z.object({
  /** Slack's id of the person who opened the form. Only this person can submit it. */
  personId: z.string(),
  channelId: z.string(),
  responseUrl: z.string().optional(),
});

export interface PersonaForm {
  /** Tells the person if the form does not open. Never rejects. */
  open(by: UserAction, triggerId: string): Promise<void>;
  onSubmit(payload: SubmissionPayload, workspace: Workspace): Promise<HandlerResult>;
}

export function createPersonaForm(deps: HandlerDeps): PersonaForm {
  return {
    async open(by, triggerId) {
      const { workspace, person, channelId, responseUrl } = by;
      try {
        const set = await deps.readPersona?.({ platform: PLATFORM, workspaceId: workspace.teamId, channelId });
        const values = { persona: set?.persona ?? "", prompts: set?.prompts?.join("\n") ?? "" };
        const metadata = JSON.stringify({ personId: person.id, channelId, responseUrl });
        const args = { trigger_id: triggerId, view: toForm(values, metadata) };
        await deps.api.call(workspace.teamId, "views.open", args, AbortSignal.timeout(OPEN_MS));
      } catch (err) {
        deps.log.info({ err, team: workspace.teamId }, "Could not open the form for a persona.");
        await deps.tellPerson(by, "I couldn't open the form. `/persona show` shows what is set.").catch(() => {});
      }
    },
    async onSubmit({ user, view }, workspace) {
      const about = readMetadata(opened, view.private_metadata);
      if (about?.personId !== user.id) return NOTHING;
      const { values } = view.state;
      const options = { persona: readTextArea(values, "persona"), prompts: readTextArea(values, "prompts") };
      const errors = findPersonaProblems(options);
      if (Object.keys(errors).length > 0) return { events: [], response: { response_action: "errors", errors } };
      const { channelId, responseUrl } = about;
      const name = `form:${view.id}:${view.hash}`;
      const by: UserAction = { workspace, person: user, channelId, responseUrl, name };
      const base = await toEventBase(by, { isPrivate: true }, deps);
      const event: CommandEvent = { kind: "command", ...base, name: PERSONA, text: "", options };
      return { events: [event] };
    },
  };
}

function toForm(values: PersonaFields, metadata: string): Body {
  const lines = (name: keyof PersonaFields, label: string) =>
    field(name, label, textArea(MAX_PROMPT_CHARS, values[name]), { optional: true });
  return form({
    id: PERSONA_FORM,
    title: "Persona",
    submit: "Save",
    metadata,
    blocks: [
      lines("persona", "How I should behave in this channel"),
      lines("prompts", "Prompts I should suggest, one per line"),
      remark("Both apply to everyone in this channel. Leave a field empty to clear it."),
    ],
  });
}
