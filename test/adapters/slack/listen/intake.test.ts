import { describe, expect, test } from "vitest";
import type { Body } from "../../../../adapters/slack/api/wire.ts";
import { createDelivery } from "../../../../adapters/slack/listen/delivery.ts";
import { createIntake } from "../../../../adapters/slack/listen/intake.ts";
import type { Reaction } from "../../../../adapters/slack/listen/surfaces.ts";
import type { InboundEvent } from "../../../../src/port/events.ts";
import { recordingLog } from "../../../support/log.ts";
import { ACME } from "../workspace.ts";

interface Options {
  isTaking?: boolean;
  isSingle?: boolean;
  accept?: (event: InboundEvent) => Promise<void>;
  reaction?: Reaction;
}

function start({
  isTaking = true,
  isSingle = false,
  accept = async () => {},
  reaction = { events: [] },
}: Options = {}) {
  const heard: string[] = [];
  const { log, lines } = recordingLog();
  const delivery = createDelivery(accept);
  const intake = createIntake({
    workspaces: {
      find: async (teamId) => (teamId === ACME.teamId ? ACME : undefined),
      ...(isSingle && { sole: () => ACME }),
    },
    delivery: () => (isTaking ? delivery : undefined),
    listener: async ({ type }, { teamId }) => void heard.push(`${String(type)} in ${teamId}`),
    surfaces: {
      onInteraction: async (_, { teamId }) => {
        heard.push(`interaction in ${teamId}`);
        return reaction;
      },
      onEvent: async ({ type }, _, workspace) => {
        heard.push(`${String(type)} in ${workspace?.teamId}`);
        return reaction;
      },
    },
    log,
  });
  const tell = (type: string, body: Body) => intake.onEvent({ type }, { event: { type }, ...body });
  return { intake, tell, heard, lines };
}

const OURS = { team_id: "T9", authorizations: [{ team_id: "T1" }] };

describe("the intake", () => {
  test("hears an event in the workspace it was authorised for, whosever it is", async () => {
    const { tell, heard } = start();
    await tell("message", OURS);
    await tell("app_mention", { team_id: "T1" });
    await tell("app_home_opened", OURS);
    expect(heard).toEqual(["message in T1", "app_mention in T1", "app_home_opened in T1"]);
  });

  test("answers nobody in a workspace without the bot, and says so once", async () => {
    const { tell, heard, lines } = start({ isSingle: true });
    await tell("message", { team_id: "T9" });
    await tell("message", { team_id: "T9" });
    await tell("app_uninstalled", { team_id: "T9" });
    expect(heard).toEqual(["app_uninstalled in undefined"]);
    expect(lines).toHaveLength(1);
  });

  test("takes an event that names no workspace as said in the only one there is", async () => {
    const { tell, heard } = start({ isSingle: true });
    await tell("message", {});
    expect(heard).toEqual(["message in T1"]);
    const several = start();
    await several.tell("message", {});
    expect(several.heard).toEqual([]);
  });

  test("takes what people of another organisation press as said in the only workspace there is", async () => {
    const foreign = { type: "block_actions", team: { id: "T9" }, user: { team_id: "T9" } };
    const { intake, heard } = start({ isSingle: true });
    await intake.onInteraction(foreign);
    expect(heard).toEqual(["interaction in T1"]);
    await expect(start().intake.onInteraction(foreign)).rejects.toThrow("not installed");
  });

  test("tells who gives a command that it could not be stored, and fails for everything else", async () => {
    const events = [{ key: "k" } as InboundEvent];
    const accept = () => Promise.reject(new Error("the disk is full"));
    const { intake, tell } = start({ accept, reaction: { events, response: "fine" } });
    const { response } = await intake.onInteraction({ command: "/model", team_id: "T1" });
    expect(response).toMatchObject({ response_type: "ephemeral", text: expect.stringContaining("Try again") });
    await expect(intake.onInteraction({ type: "block_actions", team: { id: "T1" } })).rejects.toThrow("disk");
    await expect(tell("agent_session_stopped", { team_id: "T1" })).rejects.toThrow("disk");
  });

  test("takes nothing while it is paused, and leaves it to those who hear messages which of them matter", async () => {
    const { tell, intake, heard } = start({ isTaking: false });
    await tell("message", { team_id: "T1" });
    expect(heard).toEqual(["message in T1"]);
    await expect(tell("app_home_opened", { team_id: "T1" })).rejects.toThrow();
    await expect(intake.onInteraction({ command: "/model", team_id: "T1" })).rejects.toThrow();
  });
});
