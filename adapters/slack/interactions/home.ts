import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { ReadAbout } from "../../../src/port/catalogue.ts";
import type { CommandEvent } from "../../../src/port/events.ts";
import { SlackApiError } from "../api/error.ts";
import type { Workspace } from "../api/workspaces.ts";
import { PLATFORM } from "../ids.ts";
import type { Reaction } from "../listen/surfaces.ts";
import { toIdentity } from "../people/people.ts";
import { type Asking, toEventBase } from "./asking.ts";
import type { SurfaceDeps } from "./deps.ts";
import { HOME, HOME_ACTIONS, toHomeView } from "./home-view.ts";
import type { ImagineForms } from "./imagine.ts";
import type { PressPayload } from "./payloads.ts";

const PUBLISH_MS = 10_000;
const READ_MS = 3_000;
/** Longest that a page is waited with: whoever opened it looks at an empty one. */
const MAX_WAIT_MS = 30_000;
const NOTHING: Reaction = { events: [] };

export interface HomeDeps extends SurfaceDeps {
  forms: ImagineForms | undefined;
  readAbout: ReadAbout | undefined;
}

const metadata = z.object({ channelId: z.string(), userId: z.string().default("") });

/** A workspace, as far as a home needs it. */
type Looked = Pick<Workspace, "teamId" | "enterpriseId" | "isSole">;

/** The page that everybody has for themselves: what the bot is, what it may be asked, one's own settings and data. */
export interface Home {
  /** Rejects when Slack does not take the page. */
  show(workspace: Looked, userId: string, channelId: string): Promise<void>;
  /** Undefined for what is not on the page. */
  onPress(payload: PressPayload, workspace: Workspace): Promise<Reaction | undefined>;
}

export function createHome(deps: HomeDeps): Home {
  const { commands, listModels, forms, readAbout } = deps;

  async function show(workspace: Looked, userId: string, channelId: string): Promise<void> {
    const signal = AbortSignal.timeout(READ_MS);
    const [models, about] = await Promise.all([
      listModels(signal).catch(() => []),
      readAbout?.({
        platform: PLATFORM,
        workspaceId: workspace.teamId,
        channelId,
        author: toIdentity(workspace, userId),
      }).catch(() => undefined),
    ]);
    const view = toHomeView({ commands, models, about, draws: forms !== undefined, channelId, userId });
    const publish = () =>
      deps.api.call(workspace.teamId, "views.publish", { user_id: userId, view }, AbortSignal.timeout(PUBLISH_MS));
    try {
      await publish();
    } catch (error) {
      const waitMs = error instanceof SlackApiError ? error.retryAfterMs : undefined;
      if (waitMs === undefined || waitMs > MAX_WAIT_MS) throw error;
      await sleep(waitMs, undefined, { ref: false });
      await publish();
    }
  }

  return {
    show,
    async onPress(payload, workspace) {
      const { view, user, trigger_id: trigger } = payload;
      const [element] = payload.actions;
      if (view?.callback_id !== HOME || element === undefined) return undefined;
      const { channelId, userId } = metadata.parse(JSON.parse(view.private_metadata));
      // A home of somebody else, or of a former version, which is drawn anew when it is opened.
      if (userId !== user.id) return NOTHING;
      if (element.action_id === HOME_ACTIONS.draw) {
        if (forms === undefined) return NOTHING;
        return {
          events: [],
          afterwards: () => forms.open({ workspace, person: user, channelId }, trigger, { references: [] }),
        };
      }
      const said = toCommand(element.action_id, element.selected_option?.value);
      if (said === undefined) return NOTHING;
      const asking: Asking = { workspace, person: user, channelId, name: `home:${trigger}`, isFromHome: true };
      const base = await toEventBase(asking, { isPrivate: true }, deps);
      const event: CommandEvent = { kind: "command", ...base, ...said };
      return { events: [event] };
    },
  };
}

/** What is chosen on the page is a command given in the direct conversation. */
function toCommand(actionId: string, value: string | undefined): Pick<CommandEvent, "name" | "text"> | undefined {
  if (actionId === HOME_ACTIONS.model && value !== undefined) return { name: "model", text: value };
  if (actionId === HOME_ACTIONS.export) return { name: "export", text: "" };
  if (actionId === HOME_ACTIONS.forget) return { name: "forget", text: "everything for good" };
  return undefined;
}
