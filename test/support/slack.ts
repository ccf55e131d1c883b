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

/** A Slack with a person and a channel. */
export async function startGeneral(options: SimulatorOptions = {}, onEnd: OnEnd = onTestFinished) {
  const slack = await startSlack(options, onEnd);
  const ada = slack.user({ name: "Ada" });
  return { slack, ada, general: slack.channel({ name: "general", members: [ada] }) };
}
