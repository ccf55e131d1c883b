import { describe, expect, test } from "vitest";
import { createRandom } from "../../../lab/pacing/random.ts";
import { startStage, TRANSPORTS } from "./stage.ts";

const MESSAGES = 40;
/** Longer than Slack's pauses before its retries. */
const RETRIES_MS = 6 * 60_000;

describe.each(TRANSPORTS)("the Slack adapter under faults between Slack and the store over %s", (transport) => {
  test.each([1, 2])("faults between Slack and the store lose and double no message (seed %i)", async (seed) => {
    const { next: random } = createRandom(seed);
    const failures = new Map<string, number>();
    const { slack, general, ada, bob, events } = await startStage({
      transport,
      // Over HTTP, Slack gets a refusal at once. In Socket Mode, Slack waits for a missing acknowledgement.
      ...(transport === "Socket Mode" && { simulator: { limits: { ackMs: 1_000 } } }),
      async accept({ key }) {
        const failed = failures.get(key) ?? 0;
        failures.set(key, failed + 1);
        if (failed === 0 && random() < 0.3) throw new Error("the disk is full");
      },
    });
    slack.allow("late-ack");
    const asked: string[] = [];
    for (let index = 0; index < MESSAGES; index++) {
      const person = random() < 0.5 ? ada : bob;
      const message = random() < 0.5 ? person.dm(`${index}`) : person.mention(general, `${index}`);
      asked.push(`slack:${slack.workspace.id}:${message.channel.id}:${message.ts}`);
      const chance = random();
      if (chance < 0.1) void slack.redeliver(message);
      if (transport === "HTTP") continue;
      if (chance > 0.92) slack.disconnect("refresh_requested", { isOne: chance > 0.95, completesClose: chance < 0.98 });
      if (chance > 0.9 && chance < 0.92) slack.dropConnections();
      await slack.until(() => slack.connections() > 0, "a socket");
    }
    const isAllThere = () => asked.every((key) => events.some((event) => event.key === key));
    while (!slack.deliveries.every(({ isSettled }) => isSettled)) {
      const before = slack.deliveries.reduce((sum, { attempts }) => sum + attempts.length, 0);
      slack.advance(RETRIES_MS);
      const hasMoved = () =>
        slack.deliveries.reduce((sum, { attempts }) => sum + attempts.length, 0) > before ||
        slack.deliveries.every(({ isSettled }) => isSettled);
      await slack.until(hasMoved, "further attempts");
    }
    expect(isAllThere()).toBe(true);
    expect(new Set(events.map(({ key }) => key))).toEqual(new Set(asked));
  });
});
