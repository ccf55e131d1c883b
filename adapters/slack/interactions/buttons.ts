import type { ActionEvent } from "../../../src/port/events.ts";
import type { Workspace } from "../api/workspaces.ts";
import type { Reaction } from "../listen/surfaces.ts";
import { readButtonValue } from "../write/button-values.ts";
import { type Asking, toEventBase } from "./asking.ts";
import type { SurfaceDeps } from "./deps.ts";
import type { ImagineForms } from "./imagine.ts";
import type { PressPayload } from "./payloads.ts";
import { toWhisper } from "./response-urls.ts";

const NOTHING: Reaction = { events: [] };
const WORN_OUT = "This button does not do anything any more.";

export interface ButtonsDeps extends SurfaceDeps {
  forms: ImagineForms | undefined;
}

/** A button under a message of ours was pressed. */
export function createButtons(deps: ButtonsDeps): (payload: PressPayload, workspace: Workspace) => Promise<Reaction> {
  const { forms } = deps;

  function tell({ response_url }: PressPayload, text: string): Reaction {
    return { events: [], afterwards: () => deps.respond(response_url, toWhisper(text)) };
  }

  return async (payload, workspace) => {
    const { channel, container, user, response_url: responseUrl, trigger_id: trigger } = payload;
    const channelId = channel?.id ?? container.channel_id;
    const [element] = payload.actions;
    if (channelId === undefined || element === undefined) return NOTHING;
    const press = readButtonValue(element.value ?? element.selected_option?.value);
    if (press === undefined) return tell(payload, WORN_OUT);
    const threadTs = threadOf(payload);
    const { action, turnId } = press;
    if (action === "edit") {
      if (forms === undefined) return tell(payload, WORN_OUT);
      const opened = { responseUrl, basis: turnId, isPrivate: container.is_ephemeral, references: [] };
      const doing = { workspace, person: user, channelId, threadTs };
      return { events: [], afterwards: () => forms.open(doing, trigger, opened) };
    }
    const asking: Asking = { workspace, person: user, channelId, threadTs, responseUrl, name: `press:${trigger}` };
    // Who sees what comes of a button is who saw the button.
    const base = await toEventBase(asking, { isPrivate: container.is_ephemeral }, deps);
    const event: ActionEvent = { kind: "action", ...base, action, turnId };
    return { events: [event] };
  };
}

/** What comes of a button stands in the thread of its message. What only one person sees begins none. */
function threadOf({ message, container }: PressPayload): string | undefined {
  const root = container.is_ephemeral ? undefined : (message?.ts ?? container.message_ts);
  return message?.thread_ts ?? container.thread_ts ?? root;
}
