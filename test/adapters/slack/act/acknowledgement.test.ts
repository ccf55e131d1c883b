import { describe, expect, test } from "vitest";
import { createTakeDelivery, type HandlerResult } from "../../../../adapters/slack/act/acknowledgement.ts";
import type { Body } from "../../../../adapters/slack/api/wire.ts";
import { createDelivery } from "../../../../adapters/slack/hear/delivery.ts";
import { recordingLog } from "../../../../lab/support/log.ts";
import type { InboundEvent } from "../../../../src/port/events.ts";
import { ACME } from "../workspace.ts";

interface Options {
  isTaking?: boolean;
  isSingle?: boolean;
  accept?: (event: InboundEvent) => Promise<void>;
  result?: HandlerResult;
  /** Replaces the handlers with ones that reject or never resolve. */
  handle?: () => Promise<void>;
}

function start({
  isTaking = true,
  isSingle = false,
  accept = async () => {},
  result = { events: [] },
  handle = async () => {},
}: Options = {}) {
  const [heard, told]: [string[], string[]] = [[], []];
  const { log, lines } = recordingLog();
  const delivery = createDelivery(accept);
  const looked: string[] = [];
  const take = createTakeDelivery({
    workspaces: {
      async find(teamId) {
        looked.push(teamId);
        return teamId === ACME.teamId ? ACME : undefined;
      },
      ...(isSingle && { sole: () => ACME }),
    },
    delivery: () => (isTaking ? delivery : undefined),
    listener: async ({ type }, { teamId }) => void heard.push(`${String(type)} in ${teamId}`),
    interactions: {
      onInteraction: async (_, { teamId }) => {
        await handle();
        heard.push(`interaction in ${teamId}`);
        return result;
      },
      onEvent: async ({ type }, _, workspace) => {
        await handle();
        heard.push(`${String(type)} in ${workspace?.teamId}`);
        return result;
      },
    },
    tell: async ({ key }, _, words) => void told.push(`${key}: ${words}`),
    log,
  });
  /** Resolves to the response that Slack gets. Rejects if there is none. */
  async function say(body: Body): Promise<unknown> {
    const answers: unknown[] = [];
    await take({ body: { ...body }, ack: async (answer?: unknown) => void answers.push(answer) });
    expect(answers).toHaveLength(1);
    return answers[0];
  }
  const tell = (type: string, body: Body) => say({ event: { type }, ...body });
  return { say, tell, heard, told, looked, lines };
}

const OURS = { team_id: "T9", authorizations: [{ team_id: "T1" }] };

describe("the reading of a delivery from Slack", () => {
  test("the adapter handles a delivery in the workspace that authorised it, even if the author is from another workspace", async () => {
    const { tell, heard } = start();
    await tell("message", OURS);
    await tell("app_mention", { team_id: "T1" });
    await tell("app_home_opened", OURS);
    expect(heard).toEqual(["message in T1", "app_mention in T1", "app_home_opened in T1"]);
  });

  test("the adapter does not answer a delivery for a workspace without the bot, and logs it once", async () => {
    const { tell, heard, lines } = start({ isSingle: true });
    const foreign = { team_id: "T9", authorizations: [{ team_id: "T9" }] };
    await tell("message", foreign);
    await tell("message", foreign);
    await tell("app_uninstalled", foreign);
    expect(heard).toEqual(["app_uninstalled in undefined"]);
    expect(lines).toHaveLength(1);
  });

  test.each([{}, { team_id: "T9" }])(
    "an event that names no installation belongs to the only one: %j",
    async (body) => {
      const { tell, heard } = start({ isSingle: true });
      await tell("message", body);
      expect(heard).toEqual(["message in T1"]);
      const several = start();
      await several.tell("message", body);
      expect(several.heard).toEqual([]);
    },
  );

  test("an action by a person of another organisation belongs to the only workspace", async () => {
    const foreign = { type: "block_actions", team: { id: "T9" }, user: { team_id: "T9" } };
    const { say, heard } = start({ isSingle: true });
    await say(foreign);
    expect(heard).toEqual(["interaction in T1"]);
    await expect(start().say(foreign)).rejects.toThrow("not installed");
  });

  test("a paused adapter rejects interactions, and the listener decides about messages", async () => {
    const { tell, say, heard } = start({ isTaking: false });
    await tell("message", { team_id: "T1" });
    expect(heard).toEqual(["message in T1"]);
    await expect(tell("app_home_opened", { team_id: "T1" })).rejects.toThrow();
    await expect(say({ command: "/model", team_id: "T1" })).rejects.toThrow();
  });
});

const EVENT = { type: "event_callback", team_id: "T1", event: { type: "app_home_opened" } };
const PRESS = { type: "block_actions", team: { id: "T1" }, user: { id: "U1" }, actions: [{ action_id: "a" }] };
const COMMAND = { command: "/model", team_id: "T1", user_id: "U1", channel_id: "C1" };
const FORM = { type: "view_submission", team: { id: "T1" }, user: { id: "U1" }, view: { callback_id: "v" } };

describe("the acknowledgement of a delivery", () => {
  test("Slack gets the acknowledgement after the adapter has handled the delivery, and the follow-up starts then", async () => {
    const order: string[] = [];
    const { tell } = start({
      handle: async () => void order.push("heard"),
      result: { events: [], afterwards: async () => void order.push("afterwards") },
    });
    await tell("app_home_opened", { team_id: "T1" });
    expect(order).toEqual(["heard", "afterwards"]);
  });

  test("Slack gets no acknowledgement for an event that could not be stored", async () => {
    const { say } = start({ handle: () => Promise.reject(new Error("the disk is full")) });
    for (const body of [EVENT, PRESS, COMMAND, FORM]) await expect(say(body)).rejects.toThrow("the disk is full");
  });

  test("Slack gets no acknowledgement for an event that is not stored in time", async () => {
    const { say } = start({ handle: () => new Promise<never>(() => {}) });
    await expect(say(EVENT)).rejects.toThrow("in time");
  });

  test("the acknowledgement contains the answer to an interaction", async () => {
    const { say } = start({ result: { events: [], response: { response_action: "clear" } } });
    for (const body of [PRESS, COMMAND, FORM]) expect(await say(body)).toEqual({ response_action: "clear" });
  });

  test("an acknowledgement needs one lookup of the workspace", async () => {
    const { say, looked } = start();
    for (const body of [EVENT, PRESS, COMMAND, FORM]) await say(body);
    expect(looked).toEqual(["T1", "T1", "T1", "T1"]);
  });

  test("the adapter acknowledges and logs an unknown kind of payload", async () => {
    const { say, lines } = start();
    for (const body of [{}, { type: "app_rate_limited" }, { event: null }, { event: { type: 5 } }]) {
      expect(await say(body)).toBeUndefined();
    }
    expect(lines.filter(({ level }) => level === 40)).toHaveLength(4);
  });

  test("the adapter only logs a failure that happens after the acknowledgement", async () => {
    const { say, lines } = start({ result: { events: [], afterwards: () => Promise.reject(new Error("late")) } });
    await say(EVENT);
    await Promise.resolve();
    expect(JSON.stringify(lines)).toContain("Slack's delivery was acknowledged, but the follow-up failed.");
  });
});
