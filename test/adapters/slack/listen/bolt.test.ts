import type { App, Receiver } from "@slack/bolt";
import { describe, expect, test } from "vitest";
import type { Body } from "../../../../adapters/slack/api/wire.ts";
import { createBolt, type Hearing } from "../../../../adapters/slack/listen/bolt.ts";
import { recordingLog } from "../../../support/log.ts";
import { ACME } from "../workspace.ts";

async function start(hearing: Partial<Hearing>, isInstalled = true) {
  const { log, lines } = recordingLog();
  const app = createBolt({
    receiver: { init() {}, start: async () => {}, stop: async () => {} } satisfies Receiver,
    workspaceOf: async () => (isInstalled ? ACME : undefined),
    hearing: { onEvent: async () => ({ events: [] }), onInteraction: async () => ({ events: [] }), ...hearing },
    log,
  });
  await app.init();
  return { lines, tell: (body: Body) => tell(app, body) };
}

/** What Slack is answered; rejects where it is answered nothing. */
async function tell(app: App, body: Body): Promise<unknown[]> {
  const answers: unknown[] = [];
  await app.processEvent({ body: { ...body }, ack: async (answer?: unknown) => void answers.push(answer) });
  return answers;
}

const EVENT = { type: "event_callback", team_id: "T1", event: { type: "message" } };
const PRESS = { type: "block_actions", team: { id: "T1" }, user: { id: "U1" }, actions: [{ action_id: "a" }] };
const COMMAND = { command: "/model", team_id: "T1", user_id: "U1", channel_id: "C1" };
const FORM = { type: "view_submission", team: { id: "T1" }, user: { id: "U1" }, view: { callback_id: "v" } };

describe("Bolt", () => {
  test("acknowledges an event once it was heard, and what goes on afterwards begins then", async () => {
    const order: string[] = [];
    const { tell } = await start({
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
    const { tell } = await start({ onEvent: away, onInteraction: away });
    for (const body of [EVENT, PRESS, COMMAND, FORM]) await expect(tell(body)).rejects.toThrow("the disk is full");
  });

  test("acknowledges nothing that is not taken over in time", async () => {
    const never = new Promise<never>(() => {});
    const { tell } = await start({ onEvent: () => never });
    await expect(tell(EVENT)).rejects.toThrow("in time");
  });

  test("gives an interaction the answer that goes with it", async () => {
    const { tell } = await start({
      onInteraction: async () => ({ events: [], response: { response_action: "clear" } }),
    });
    for (const body of [PRESS, COMMAND, FORM]) expect(await tell(body)).toEqual([{ response_action: "clear" }]);
  });

  test("does not hear interactions of a workspace without the bot", async () => {
    const { tell } = await start({ onInteraction: () => Promise.reject(new Error("heard")) }, false);
    await expect(tell(PRESS)).rejects.toThrow("not installed");
  });

  test("acknowledges what is neither, and says that it came", async () => {
    const { tell, lines } = await start({});
    for (const body of [{}, { type: "app_rate_limited" }, { event: null }, { event: { type: 5 } }]) {
      expect(await tell(body)).toEqual([undefined]);
    }
    expect(lines.filter(({ level }) => level === 40)).toHaveLength(4);
  });

  test("logs what fails after the acknowledgement", async () => {
    const { tell, lines } = await start({
      onEvent: async () => ({ events: [], afterwards: () => Promise.reject(new Error("late")) }),
    });
    expect(await tell(EVENT)).toEqual([undefined]);
    await Promise.resolve();
    expect(JSON.stringify(lines)).toContain("could not be finished");
  });
});
