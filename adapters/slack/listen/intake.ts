import type { Logger } from "pino";
import type { Body } from "../api/wire.ts";
import { readText, toBodies, toBody } from "../api/wire.ts";
import type { Workspace, Workspaces } from "../api/workspaces.ts";
import type { Hearing } from "./bolt.ts";
import type { Delivery } from "./delivery.ts";
import type { Listener } from "./listener.ts";
import type { Reaction, Surfaces } from "./surfaces.ts";

const FIND_MS = 2_000;
const MESSAGES = new Set(["message", "app_mention"]);
const NOTHING: Reaction = { events: [] };
const NOT_KEPT: Body = {
  response_type: "ephemeral",
  text: "I could not store that, because my memory is out of reach. Try again in a minute.",
};

export interface IntakeDeps {
  workspaces: Workspaces;
  /** Undefined while nothing is taken. */
  delivery(): Delivery | undefined;
  listener: Listener;
  surfaces: Pick<Surfaces, "onInteraction" | "onEvent">;
  log: Logger;
}

/** What Slack says, to whom it concerns. */
export interface Intake extends Hearing {
  /** The workspace in which the bot was told something; undefined where it is not installed. */
  workspaceOf(body: Body): Promise<Workspace | undefined>;
}

export function createIntake({ workspaces, delivery, listener, surfaces, log }: IntakeDeps): Intake {
  const told = new Set<string>();

  async function workspaceOf(body: Body): Promise<Workspace | undefined> {
    const signal = AbortSignal.timeout(FIND_MS);
    const teamIds = teamsOf(body);
    for (const teamId of teamIds) {
      const found = await workspaces.find(teamId, signal);
      if (found !== undefined) return found;
    }
    // Somebody of another organisation presses a button from a workspace of their own. An event says whom it is for;
    // one that names nobody can only be for the one there is.
    return body["event"] === undefined || teamIds.length === 0 ? workspaces.sole?.() : undefined;
  }

  function taking(): Delivery {
    const current = delivery();
    if (current === undefined) throw new Error("This process takes nothing in at the moment.");
    return current;
  }

  async function takeOver({ events }: Reaction): Promise<void> {
    const [first] = events;
    // Nothing else waits for what people press, and it waits for nothing.
    if (first !== undefined) await taking().enqueue(first.key, async () => events);
  }

  function tellStranger(body: Body): void {
    const teamId = teamsOf(body)[0] ?? "";
    if (told.has(teamId)) return;
    told.add(teamId);
    log.warn({ teamId }, "Slack tells of a workspace in which the bot is not installed; nothing is answered there.");
  }

  return {
    workspaceOf,
    async onEvent(event, body) {
      const workspace = await workspaceOf(body);
      if (workspace === undefined) tellStranger(body);
      if (MESSAGES.has(readText(event["type"]) ?? "")) {
        if (workspace !== undefined) await listener(event, workspace);
        return NOTHING;
      }
      taking();
      const reaction = await surfaces.onEvent(event, body, workspace);
      await takeOver(reaction);
      return reaction;
    },
    async onInteraction(body) {
      taking();
      const workspace = await workspaceOf(body);
      if (workspace === undefined) throw new Error("The bot is not installed in this workspace.");
      const reaction = await surfaces.onInteraction(body, workspace);
      try {
        await takeOver(reaction);
        return reaction;
      } catch (error) {
        // Slack never sends it again, and shows the answer to a command alone.
        if (body["command"] === undefined) throw error;
        log.warn({ err: error }, "A command could not be stored.");
        return { events: [], response: NOT_KEPT };
      }
    },
  };
}

/** The workspaces it may be, the surest first. In channels of several organisations people act from their own. */
function teamsOf(body: Body): string[] {
  const authorized = toBodies(body["authorizations"]).map(({ team_id }) => team_id);
  const { team_id, enterprise_id } = body;
  const found = [
    ...authorized,
    toBody(body["view"])["app_installed_team_id"],
    toBody(body["team"])["id"],
    team_id,
    enterprise_id,
  ];
  return [...new Set(found.map(readText).filter((id) => id !== undefined))];
}
