import { describe, expect, test } from "vitest";
import { openSlack } from "../../lab/slack-sim/control.ts";
import { callApi } from "../../lab/slack-sim/web-api.ts";
import { startSlack } from "./slack.ts";

async function disturb(slack: Awaited<ReturnType<typeof startSlack>>): Promise<void> {
  const general = slack.channel({ name: "general" });
  await callApi(slack, "chat.postMessage", { channel: general.id, text: "<!here>" });
}

describe("the Slack simulator for one test", () => {
  test.fails("the simulator fails a test that broke a rule, at the end of the test", async () => {
    await disturb(await startSlack());
  });

  test("a test can allow violations that it expects", async () => {
    const slack = await startSlack();
    await disturb(slack);
    expect(() => slack.assertClean()).toThrow(/says <!here>, which notifies people/);
    slack.assertClean({ allow: ["ping"] });
    slack.allow("ping");
  });

  test("closing the simulator rejects all waits", async () => {
    const slack = await openSlack();
    const waiting = slack.until(() => false);
    const [, result] = await Promise.allSettled([slack.close(), waiting]);
    expect(result).toMatchObject({ status: "rejected", reason: { message: expect.stringMatching(/closed/) } });
    await expect(fetch(slack.apiUrl)).rejects.toThrow();
  });
});
