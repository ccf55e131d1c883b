import type { APIModalInteractionResponseCallbackData, APIModalSubmitInteraction } from "discord.js";
import { MAX_REASON_CHARS } from "../../../src/port/events.ts";
import { type Press, readCustomId, toCustomId } from "../write/draft.ts";
import type { HandlerDeps } from "./acknowledgement.ts";
import { readField, toTextField } from "./forms.ts";
import { type PendingInteraction, toActionEvent } from "./user-action.ts";

/** The form's id is this prefix and the id of the button that opened the form, so the form survives a restart. */
const PREFIX = "why:";
const REASON = "reason";
const MAX_CUSTOM_ID = 100;

/** Undefined if the button's id is too long for the form's id. */
export function toReasonForm(press: Press): APIModalInteractionResponseCallbackData | undefined {
  const customId =
    PREFIX + toCustomId({ action: "bad", turnId: press.turnId, ...(press.root && { root: press.root }) });
  if (customId.length > MAX_CUSTOM_ID) return undefined;
  const label = "Why? Your rating is already saved.";
  const field = toTextField({ name: REASON, label, maxLength: MAX_REASON_CHARS });
  return { custom_id: customId, title: "What was wrong with the answer?", components: [field] };
}

/** Undefined for other forms. */
export function onReason(interaction: APIModalSubmitInteraction, deps: HandlerDeps): Promise<void> | undefined {
  const sent = readReasonForm(interaction);
  if (sent === undefined) return undefined;
  const { press, reason } = sent;
  const pending: PendingInteraction = { interaction, isPrivate: true, isPress: true };
  const judged = { ...press, action: "bad" as const };
  return deps.take(pending, "press", () => ({
    ...toActionEvent(pending, interaction, judged, deps),
    ...(reason !== "" && { reason }),
  }));
}

/** Undefined for other forms, and for an empty reason. */
function readReasonForm(interaction: APIModalSubmitInteraction): { press: Press; reason: string } | undefined {
  const { data } = interaction;
  if (!data.custom_id.startsWith(PREFIX)) return undefined;
  const press = readCustomId(data.custom_id.slice(PREFIX.length));
  if (press?.action !== "bad") return undefined;
  return { press, reason: readField(interaction, REASON) };
}
