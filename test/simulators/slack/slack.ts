import { onTestFinished } from "vitest";
import { openSlack, type Slack } from "./control.ts";
import type { SimulatorOptions } from "./simulator.ts";

export type { Slack } from "./control.ts";

/** Starts a Slack that ends with the test, which fails when the app broke a rule that was not allowed to be broken. */
export async function startSlack(options: SimulatorOptions = {}): Promise<Slack> {
  const slack = await openSlack(options);
  onTestFinished(async () => {
    await slack.close();
    slack.assertClean();
  });
  return slack;
}
