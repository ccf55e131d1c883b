import type { InboundEvent } from "../../../src/port/events.ts";
import type { Body } from "../api/wire.ts";
import type { Workspace } from "../api/workspaces.ts";

/** What becomes of something people did besides writing. */
export interface Reaction {
  /** Taken over, in this order, before Slack hears anything. */
  events: readonly InboundEvent[];
  /** Goes with the acknowledgement: the answer to a command, the `response_action` of a form. */
  response?: Body | string;
  /** Begun once Slack has its acknowledgement. A rejection is logged. */
  afterwards?(): Promise<void>;
}

/** Commands, buttons, forms, shortcuts, the home tab and the assistant's pane. */
export interface Surfaces {
  /** A command, button, form or shortcut: Slack waits three seconds for it and never sends it again. */
  onInteraction(body: Body, workspace: Workspace): Promise<Reaction>;
  /**
   * An event that tells of no message: `app_home_opened`, `agent_session_stopped`, `tokens_revoked` and the like.
   * `workspace` is undefined where the bot is not installed any more. What was rejected is delivered again.
   */
  onEvent(event: Body, body: Body, workspace: Workspace | undefined): Promise<Reaction>;
  /** Draws somebody's home again, after what may have changed what it says. Best effort: never rejects. */
  redrawHome(where: { teamId: string; userId: string; channelId: string }): Promise<void>;
}
