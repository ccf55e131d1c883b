import type { ActionEvent } from "../../../src/port/events.ts";
import type { Workspace } from "../api/workspaces.ts";
import type { HandlerResult } from "../listen/intake.ts";
import { readButtonValue } from "../write/blocks.ts";
import type { ImagineForms } from "./imagine.ts";
import type { ButtonPayload } from "./payloads.ts";
import { type HandlerDeps, toEventBase, type UserAction } from "./user-action.ts";

const NOTHING: HandlerResult = { events: [] };
const WORN_OUT = "This button does not do anything any more.";

export interface ButtonsDeps extends HandlerDeps {
  forms: ImagineForms | undefined;
}

/** A button under a message of ours was pressed. */
export function createButtons(
  deps: ButtonsDeps,
): (payload: ButtonPayload, workspace: Workspace) => Promise<HandlerResult> {
  const { forms } = deps;

  return async (payload, workspace) => {
    const { channel, container, user, response_url: responseUrl, trigger_id: trigger } = payload;
    const channelId = channel?.id ?? container.channel_id;
    const [element] = payload.actions;
    if (channelId === undefined || element === undefined) return NOTHING;
    const press = readButtonValue(element.value ?? element.selected_option?.value);
    const inThread = payload.message?.thread_ts ?? container.thread_ts ?? undefined;
    const told = { workspace, person: user, channelId, threadTs: inThread, responseUrl };
    const tellWornOut = { events: [], afterwards: () => deps.tellPerson(told, WORN_OUT) };
    if (press === undefined) return tellWornOut;
    const threadTs = threadOf(payload);
    const { action, turnId } = press;
    if (action === "edit") {
      if (forms === undefined) return tellWornOut;
      const opened = { responseUrl, basis: turnId, isPrivate: container.is_ephemeral, references: [] };
      const by = { workspace, person: user, channelId, threadTs };
      return { events: [], afterwards: () => forms.open(by, trigger, opened) };
    }
    const userAction: UserAction = {
      workspace,
      person: user,
      channelId,
      threadTs,
      responseUrl,
      name: `press:${trigger}`,
    };
    // The result of a button is shown to those who saw the button.
    const base = await toEventBase(userAction, { isPrivate: container.is_ephemeral }, deps);
    const event: ActionEvent = { kind: "action", ...base, action, turnId };
    return { events: [event] };
  };
}

/** The result of a button stands in the thread of its message. A message that only one person sees begins none. */
function threadOf({ message, container }: ButtonPayload): string | undefined {
  const root = container.is_ephemeral ? undefined : (message?.ts ?? container.message_ts);
  return message?.thread_ts ?? container.thread_ts ?? root;
}
