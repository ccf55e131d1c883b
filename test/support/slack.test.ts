import { describe, expect, test } from "vitest";
import { openSlack } from "./control.ts";
import { startSlack } from "./slack.ts";
import { callApi, errorOf } from "./web-api.ts";

async function disturb(slack: Awaited<ReturnType<typeof startSlack>>): Promise<void> {
  const general = slack.channel({ name: "general" });
  await callApi(slack, "chat.postMessage", { channel: general.id, text: "<!here>" });
}

describe("slack", () => {
  test.fails("fails the test that broke a rule, by itself at its end", async () => {
    await disturb(await startSlack());
  });

  test("lets a test say what it expects", async () => {
    const slack = await startSlack();
    await disturb(slack);
    expect(() => slack.assertClean()).toThrow(/says <!here>, which notifies people/);
    slack.assertClean({ allow: ["ping"] });
    slack.allow("ping");
  });

  test("has an address as SLACK_API_URL wants it, on loopback", async () => {
    const slack = await startSlack();
    expect(slack.apiUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/api\/$/);
    expect((await fetch(slack.apiUrl.replace("/api/", "/nowhere"))).status).toBe(404);
  });

  test("keeps several simulators apart", async () => {
    const [one, two] = [await startSlack(), await startSlack()];
    const general = one.channel({ name: "general" });
    const args = { channel: general.id, text: "hi" };
    expect(await errorOf(one, "chat.postMessage", args)).toBe("ok");
    expect(await errorOf(two, "chat.postMessage", args, two.botToken)).toBe("channel_not_found");
  });

  test("is gone when it is closed, with whoever still waited", async () => {
    const slack = await openSlack();
    const waiting = slack.until(() => false);
    const [, result] = await Promise.allSettled([slack.close(), waiting]);
    expect(result).toMatchObject({ status: "rejected", reason: { message: expect.stringMatching(/closed/) } });
    await expect(fetch(slack.apiUrl)).rejects.toThrow();
  });
});
