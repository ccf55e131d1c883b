/** Handles a press of a button under one of the bot's messages. */
import { type APIMessageComponentInteraction, InteractionResponseType } from "discord.js";
import { askWithin } from "../../../src/concurrency/deadlines.ts";
import type { ScheduleForm } from "../../../src/port/catalogue.ts";
import type { Action } from "../../../src/port/events.ts";
import { readCustomId } from "../write/draft.ts";
import { type HandlerDeps, say } from "./acknowledgement.ts";
import { FORM_MS } from "./forms.ts";
import type { PictureForms } from "./imagine-form.ts";
import { toReasonForm } from "./reason-form.ts";
import { toScheduleForm } from "./schedule-form.ts";
import { isOnPrivate, type PendingInteraction, toActionEvent, toActor } from "./user-action.ts";

/** Everyone sees the results of these buttons, unless the image itself is private. */
const PUBLIC_ACTIONS: ReadonlySet<Action> = new Set(["again", "vary", "upscale"]);

export interface ButtonsDeps extends HandlerDeps {
  forms: PictureForms | undefined;
  scheduleForm?: ScheduleForm | undefined;
}

export function createButtons(deps: ButtonsDeps): (interaction: APIMessageComponentInteraction) => Promise<void> {
  const { acknowledge, take, forms, scheduleForm } = deps;
  return async (interaction) => {
    const press = readCustomId(interaction.data.custom_id);
    const action = press?.action;
    if (action === "edit" && forms !== undefined) return forms.openEdit(interaction, press?.turnId ?? "");
    if (press === undefined || action === undefined || action === "edit") {
      await acknowledge(interaction, say("This button no longer works. Ask me again instead."));
      return;
    }
    if (action === "reschedule") {
      const by = toActor(interaction, deps);
      const values = await askWithin(FORM_MS, async () => scheduleForm?.read(press.turnId, by), undefined);
      const data = values && toScheduleForm(press, values);
      if (data !== undefined) {
        await acknowledge(interaction, { type: InteractionResponseType.Modal, data });
        return;
      }
    }
    const isPrivate = !PUBLIC_ACTIONS.has(action) || isOnPrivate(interaction);
    const pending: PendingInteraction = { interaction, isPrivate };
    const form = action === "bad" ? toReasonForm(press) : undefined;
    await take(pending, "press", () => toActionEvent(pending, interaction, { ...press, action }, deps), form);
  };
}
