import type { ActionEvent } from "../../../src/port/events.ts";
import type { Workspace } from "../api/workspaces.ts";
import { readButtonValue } from "../write/draft.ts";
import { type HandlerResult, NOTHING } from "./acknowledgement.ts";
import type { ImagineForms } from "./imagine-form.ts";
import type { ButtonPayload } from "./payloads.ts";
import type { ReasonForm } from "./reason-form.ts";
import type { ScheduleForms } from "./schedule-form.ts";
import { type HandlerDeps, toEventBase, toName, type UserAction } from "./user-action.ts";

const EXPIRED_BUTTON = "This button no longer works. Ask me again instead.";

export interface ButtonsDeps extends HandlerDeps {
  forms: ImagineForms | undefined;
  reasons: ReasonForm;
  schedules: ScheduleForms;
}

export function createButtons(
  deps: ButtonsDeps,
): (payload: ButtonPayload, workspace: Workspace) => Promise<HandlerResult> {
  const { forms, reasons, schedules } = deps;

  return async (payload, workspace) => {
    const { channel, container, user, response_url: responseUrl, trigger_id: trigger } = payload;
    const channelId = channel?.id ?? container.channel_id;
    const [element] = payload.actions;
    if (channelId === undefined || element === undefined) return NOTHING;
    const press = readButtonValue(element.value ?? element.selected_option?.value);
    const inThread = payload.message?.thread_ts ?? container.thread_ts ?? undefined;
    const recipient = { workspace, person: user, channelId, threadTs: inThread, responseUrl };
    const tellExpired = { events: [], afterwards: () => deps.tellPerson(recipient, EXPIRED_BUTTON) };
    if (press === undefined) return tellExpired;
    const threadTs = threadOf(payload);
    const { action, turnId } = press;
    if (action === "edit") {
      if (forms === undefined) return tellExpired;
      const opened = { responseUrl, basis: turnId, isPrivate: container.is_ephemeral, references: [] };
      const by = { workspace, person: user, channelId, threadTs };
      return { events: [], afterwards: () => forms.open(by, trigger, opened) };
    }
    const userAction: UserAction = {
      workspace,
      person: user,
      channelId,
      threadTs,
      activeThread: inThread,
      responseUrl,
      isOnEphemeral: container.is_ephemeral,
      name: toName("press", payload),
    };
    // Shows the result to the people who can see the button.
    const isPrivate = container.is_ephemeral;
    const base = await toEventBase(userAction, { isPrivate }, deps);
    const event: ActionEvent = { kind: "action", ...base, action, turnId };
    if (action === "reschedule") return schedules.onPress(event, userAction, trigger);
    if (action !== "bad") return { events: [event] };
    return { events: [event], afterwards: () => reasons.open(userAction, trigger, { turnId, isPrivate }) };
  };
}

/** The result of a button goes into the thread of its message. An ephemeral message has no thread. */
function threadOf({ message, container }: ButtonPayload): string | undefined {
  const root = container.is_ephemeral ? undefined : (message?.ts ?? container.message_ts);
  return message?.thread_ts ?? container.thread_ts ?? root;
}
