import { onTestFinished } from "vitest";
import { openSlack, type Slack } from "../../lab/slack-sim/control.ts";
import type { SimulatorOptions } from "../../lab/slack-sim/simulator.ts";
import type { OnEnd } from "./listen.ts";

export type { Slack } from "../../lab/slack-sim/control.ts";

/** Starts a Slack that closes after the test. The test fails if the app broke a rule that the test did not allow. */
export async function startSlack(options: SimulatorOptions = {}, onEnd: OnEnd = onTestFinished): Promise<Slack> {
  const slack = await openSlack(options);
  onEnd(async () => {
    await slack.close();
    slack.assertClean();
  });
  return slack;
}
