import type { App, Receiver } from "@slack/bolt";
import { describe, expect, test } from "vitest";
import type { Body } from "../../../../adapters/slack/api/wire.ts";
import { createDelivery } from "../../../../adapters/slack/listen/delivery.ts";
import {
  createBolt,
  createDispatcher,
  type Dispatcher,
  type HandlerResult,
  toBoltLogger,
} from "../../../../adapters/slack/listen/dispatcher.ts";
import type { InboundEvent } from "../../../../src/port/events.ts";
import { recordingLog } from "../../../support/log.ts";
import { ACME } from "../workspace.ts";

interface Options {
  isTaking?: boolean;
  isSingle?: boolean;
  accept?: (event: InboundEvent) => Promise<void>;
  result?: HandlerResult;
}

function start({ isTaking = true, isSingle = false, accept = async () => {}, result = { events: [] } }: Options = {}) {
  const [heard, told]: [string[], string[]] = [[], []];
  const { log, lines } = recordingLog();
  const delivery = createDelivery(accept);
  const dispatcher = createDispatcher({
    workspaces: {
      find: async (teamId) => (teamId === ACME.teamId ? ACME : undefined),
      ...(isSingle && { sole: () => ACME }),
    },
    delivery: () => (isTaking ? delivery : undefined),
    listener: async ({ type }, { teamId }) => void heard.push(`${String(type)} in ${teamId}`),
    interactions: {
      onInteraction: async (_, { teamId }) => {
        heard.push(`interaction in ${teamId}`);
        return result;
      },
      onEvent: async ({ type }, _, workspace) => {
        heard.push(`${String(type)} in ${workspace?.teamId}`);
        return result;
      },
    },
    tell: async ({ key }, _, words) => void told.push(`${key}: ${words}`),
    log,
  });
  const tell = (type: string, body: Body) => dispatcher.onEvent({ type }, { event: { type }, ...body });
  return { dispatcher, tell, heard, told, lines };
}

const OURS = { team_id: "T9", authorizations: [{ team_id: "T1" }] };

describe("the dispatcher", () => {
  test("hears an event in the workspace it was authorised for, also by people of another one", async () => {
    const { tell, heard } = start();
    await tell("message", OURS);
    await tell("app_mention", { team_id: "T1" });
    await tell("app_home_opened", OURS);
    expect(heard).toEqual(["message in T1", "app_mention in T1", "app_home_opened in T1"]);
  });

  test("answers nobody in a workspace without the bot, and says so once", async () => {
    const { tell, heard, lines } = start({ isSingle: true });
    const foreign = { team_id: "T9", authorizations: [{ team_id: "T9" }] };
    await tell("message", foreign);
    await tell("message", foreign);
    await tell("app_uninstalled", foreign);
    expect(heard).toEqual(["app_uninstalled in undefined"]);
    expect(lines).toHaveLength(1);
  });

  test.each([{}, { team_id: "T9" }])(
    "takes an event that names no installation as for the only one: %j",
    async (body) => {
      const { tell, heard } = start({ isSingle: true });
      await tell("message", body);
      expect(heard).toEqual(["message in T1"]);
      const several = start();
      await several.tell("message", body);
      expect(several.heard).toEqual([]);
    },
  );

  test("takes what people of another organisation press as said in the only workspace there is", async () => {
    const foreign = { type: "block_actions", team: { id: "T9" }, user: { team_id: "T9" } };
    const { dispatcher, heard } = start({ isSingle: true });
    await dispatcher.onInteraction(foreign);
    expect(heard).toEqual(["interaction in T1"]);
    await expect(start().dispatcher.onInteraction(foreign)).rejects.toThrow("not installed");
  });

  test("tells who gives a command, presses a button or sends a form that it could not be stored, and fails for events", async () => {
    const events = [{ key: "k" } as InboundEvent];
    const accept = () => Promise.reject(new Error("the disk is full"));
    const { dispatcher, tell, told } = start({ accept, result: { events, response: "fine" } });
    const { response } = await dispatcher.onInteraction({ command: "/model", team_id: "T1" });
    expect(response).toMatchObject({ response_type: "ephemeral", text: expect.stringContaining("Try again") });
    expect(told).toEqual([]);
    const pressed = await dispatcher.onInteraction({ type: "block_actions", team: { id: "T1" } });
    await pressed.afterwards?.();
    expect(told).toEqual([expect.stringMatching(/^k: .*Try again/)]);
    const blocks = [{ type: "section" }, { type: "input", block_id: "prompt" }];
    const sent = await dispatcher.onInteraction({ type: "view_submission", team: { id: "T1" }, view: { blocks } });
    expect(sent).toEqual({
      events: [],
      response: { response_action: "errors", errors: { prompt: expect.stringMatching(/Try again/) } },
    });
    await expect(tell("agent_session_stopped", { team_id: "T1" })).rejects.toThrow("disk");
  });

  test("takes no interactions while it is paused, and leaves messages to the listener", async () => {
    const { tell, dispatcher, heard } = start({ isTaking: false });
    await tell("message", { team_id: "T1" });
    expect(heard).toEqual(["message in T1"]);
    await expect(tell("app_home_opened", { team_id: "T1" })).rejects.toThrow();
    await expect(dispatcher.onInteraction({ command: "/model", team_id: "T1" })).rejects.toThrow();
  });
});

async function startBolt(handlers: Partial<Dispatcher>, isInstalled = true) {
  const { log, lines } = recordingLog();
  const clients = new Set<App["client"]>();
  // Ours is the last middleware: one that is registered before it sees what Bolt gives to listeners.
  function init(app: App): void {
    app.use(async ({ client, next }) => {
      clients.add(client);
      await next();
    });
  }
  const app = createBolt({
    receiver: { init, start: async () => {}, stop: async () => {} } satisfies Receiver,
    dispatcher: {
      workspaceOf: async () => (isInstalled ? ACME : undefined),
      onEvent: async () => ({ events: [] }),
      onInteraction: async () => ({ events: [] }),
      ...handlers,
    },
    log,
  });
  await app.init();
  return { app, clients, lines, tell: (body: Body) => tellApp(app, body) };
}

/** What Slack is answered; rejects where it is answered nothing. */
async function tellApp(app: App, body: Body): Promise<unknown[]> {
  const answers: unknown[] = [];
  await app.processEvent({ body: { ...body }, ack: async (answer?: unknown) => void answers.push(answer) });
  return answers;
}

const EVENT = { type: "event_callback", team_id: "T1", event: { type: "message" } };
const PRESS = { type: "block_actions", team: { id: "T1" }, user: { id: "U1" }, actions: [{ action_id: "a" }] };
const COMMAND = { command: "/model", team_id: "T1", user_id: "U1", channel_id: "C1" };
const FORM = { type: "view_submission", team: { id: "T1" }, user: { id: "U1" }, view: { callback_id: "v" } };

describe("Bolt", () => {
  test("acknowledges an event once it was handled, and begins the later work then", async () => {
    const order: string[] = [];
    const { tell } = await startBolt({
      async onEvent() {
        order.push("heard");
        return { events: [], afterwards: async () => void order.push("afterwards") };
      },
    });
    expect(await tell(EVENT)).toEqual([undefined]);
    expect(order).toEqual(["heard", "afterwards"]);
  });

  test("acknowledges nothing that could not be taken over", async () => {
    const away = () => Promise.reject(new Error("the disk is full"));
    const { tell } = await startBolt({ onEvent: away, onInteraction: away });
    for (const body of [EVENT, PRESS, COMMAND, FORM]) await expect(tell(body)).rejects.toThrow("the disk is full");
  });

  test("acknowledges nothing that is not taken over in time", async () => {
    const never = new Promise<never>(() => {});
    const { tell } = await startBolt({ onEvent: () => never });
    await expect(tell(EVENT)).rejects.toThrow("in time");
  });

  test("gives an interaction the answer that goes with it", async () => {
    const { tell } = await startBolt({
      onInteraction: async () => ({ events: [], response: { response_action: "clear" } }),
    });
    for (const body of [PRESS, COMMAND, FORM]) expect(await tell(body)).toEqual([{ response_action: "clear" }]);
  });

  test("does not hear interactions of a workspace without the bot", async () => {
    const { tell } = await startBolt({ onInteraction: () => Promise.reject(new Error("heard")) }, false);
    await expect(tell(PRESS)).rejects.toThrow("not installed");
  });

  test("keeps no client for a workspace's token, however often the token rotates", async () => {
    let rotations = 0;
    const { app, clients, tell } = await startBolt({
      workspaceOf: async () => ({ ...ACME, token: `xoxe.xoxb-${rotations++}` }),
    });
    for (const body of [PRESS, COMMAND, FORM, PRESS]) await tell(body);
    expect(rotations).toBe(4);
    expect([...clients].map(({ token }) => token)).toEqual([undefined]);
    expect(clients.has(app.client)).toBe(true);
  });

  test("acknowledges a payload of another kind, and logs it", async () => {
    const { tell, lines } = await startBolt({});
    for (const body of [{}, { type: "app_rate_limited" }, { event: null }, { event: { type: 5 } }]) {
      expect(await tell(body)).toEqual([undefined]);
    }
    expect(lines.filter(({ level }) => level === 40)).toHaveLength(4);
  });

  test("logs a failure after the acknowledgement", async () => {
    const { tell, lines } = await startBolt({
      onEvent: async () => ({ events: [], afterwards: () => Promise.reject(new Error("late")) }),
    });
    expect(await tell(EVENT)).toEqual([undefined]);
    await Promise.resolve();
    expect(JSON.stringify(lines)).toContain("The work after an acknowledged delivery of Slack's failed.");
  });
});

describe("the log of Bolt", () => {
  test("comes one level lower, and its debug lines at none", () => {
    const { log, lines } = recordingLog();
    const bolt = toBoltLogger(log);
    bolt.debug("a whole message");
    bolt.info("connected");
    bolt.warn("slow");
    bolt.error("failed:", new Error("away"));
    expect(lines.map(({ level, msg }) => [level, msg])).toEqual([
      [20, "Bolt: connected"],
      [20, "Bolt: slow"],
      [40, "Bolt reported a problem."],
      [20, "Bolt: failed: away"],
    ]);
  });

  test("is never asked for at the level at which bodies are logged", () => {
    const bolt = toBoltLogger(recordingLog().log);
    expect(bolt.getLevel()).toBe("info");
  });
});
