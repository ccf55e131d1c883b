import { describe, expect, test } from "vitest";
import { openSlack } from "../../lab/slack-sim/control.ts";
import { callApi, errorOf } from "../../lab/slack-sim/web-api.ts";
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

  test("the simulator has a loopback address in the format of SLACK_API_URL", async () => {
    const slack = await startSlack();
    expect(slack.apiUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/api\/$/);
    expect((await fetch(slack.apiUrl.replace("/api/", "/nowhere"))).status).toBe(404);
  });

  test("several simulators share nothing", async () => {
    const [one, two] = [await startSlack(), await startSlack()];
    const general = one.channel({ name: "general" });
    const args = { channel: general.id, text: "hi" };
    expect(await errorOf(one, "chat.postMessage", args)).toBe("ok");
    expect(await errorOf(two, "chat.postMessage", args, two.botToken)).toBe("channel_not_found");
  });

  test("closing the simulator rejects all waits", async () => {
    const slack = await openSlack();
    const waiting = slack.until(() => false);
    const [, result] = await Promise.allSettled([slack.close(), waiting]);
    expect(result).toMatchObject({ status: "rejected", reason: { message: expect.stringMatching(/closed/) } });
    await expect(fetch(slack.apiUrl)).rejects.toThrow();
  });
});
