import { describe, expect, test } from "vitest";
import { startService } from "../../lab/support/service.ts";
import { startSlack } from "../support/slack.ts";
import { answersIn, makeFolder, open, start } from "./slack-service.ts";

describe.concurrent("the service on Slack", () => {
  test("the service answers a mention in its thread and remembers the thread after a restart", async ({
    onTestFinished,
  }) => {
    const { slack, ada, general, service, dataDir } = await start("Socket Mode", {}, onTestFinished);
    const ready = await fetch(`${service.url}/readyz`);
    expect(await ready.json()).toMatchObject({ status: "ready", checks: { slack: "ok" } });
    const root = ada.mention(general, "My name is Ada.");
    const [first] = await answersIn(slack, general, root);
    expect(first).not.toBe("");
    expect(await service.end("SIGTERM")).toBe(0);
    await open(slack, "Socket Mode", dataDir, {}, onTestFinished);
    ada.say(general, "What is my name?", { thread: root });
    const answers = await answersIn(slack, general, root, 2);
    expect(answers[1]).toContain("Ada");
  });

  test("a service killed before its answer answers once, although Slack delivers the question again", async ({
    onTestFinished,
  }) => {
    const { slack, ada, general, service, dataDir } = await start("HTTP", {}, onTestFinished);
    const asked = ada.mention(general, "At 1 tokens per second, say: once");
    await slack.acknowledged();
    await service.end("SIGKILL");
    await open(slack, "HTTP", dataDir, {}, onTestFinished);
    await slack.redeliver(asked);
    expect(await answersIn(slack, general, asked)).toEqual(["once"]);
    const last = ada.mention(general, "Say: goodbye");
    expect(await answersIn(slack, general, last)).toHaveLength(1);
    expect(slack.texts(general, asked)).toEqual(["once"]);
  });

  test.for(["on", "unknown_method"] as const)(
    "a killed service completes its answer in one message, with streaming %s",
    async (streaming, { onTestFinished }) => {
      const { slack, ada, general, service, dataDir } = await start("Socket Mode", {}, onTestFinished);
      slack.setStreaming(streaming);
      const numbers = Array.from({ length: 120 }, (_, index) => String(index + 1)).join(" ");
      const asked = ada.mention(general, `At 60 tokens per second, say: ${numbers}`);
      const hasBegun = () => slack.answers(general, asked).some(({ states }) => states.length >= 2);
      await slack.until(hasBegun, "the beginning of the answer");
      await service.end("SIGKILL");
      await open(slack, "Socket Mode", dataDir, {}, onTestFinished);
      expect(await answersIn(slack, general, asked)).toEqual([numbers]);
    },
  );

  test("the service answers in every workspace that installed it, until the workspace removes it", async ({
    onTestFinished,
  }) => {
    const slack = await startSlack({}, onTestFinished);
    const other = slack.addWorkspace("Other");
    const service = await startService(await makeFolder(onTestFinished), {
      SLACK_CLIENT_ID: slack.clientId,
      SLACK_CLIENT_SECRET: slack.clientSecret,
      SLACK_STATE_SECRET: "a-secret-for-the-links",
      ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64"),
      SLACK_SIGNING_SECRET: slack.signingSecret,
      SLACK_API_URL: slack.apiUrl,
      PUBLIC_URL: "http://127.0.0.1:9",
    });
    onTestFinished(async () => void (await service.end("SIGKILL")));
    slack.deliverTo(`${service.url}/slack/events`);
    for (const workspace of [slack.workspace, other]) {
      slack.oauth.installInto(workspace);
      expect(await install(service.url)).toBe(200);
    }
    const people = [slack.user({ name: "Ada" }), slack.user({ name: "Eve", workspace: other })];
    for (const person of people) {
      const asked = person.dm("Say: hello");
      expect(await answersIn(slack, person.direct(), asked)).toHaveLength(1);
    }
    // Other calls for an answer, such as its status, may still be in transit.
    slack.allow("revoked-token");
    slack.revoke("account_inactive", { isTold: true, workspace: other });
    await slack.acknowledged();
    const [ada, eve] = people;
    const before = slack.requests.length;
    const unheard = eve?.dm("Say: anybody?");
    await slack.acknowledged();
    expect(unheard && slack.answers(unheard.channel, unheard)).toEqual([]);
    const asked = ada?.dm("Say: still here");
    expect(asked && (await answersIn(slack, asked.channel, asked))).toHaveLength(1);
    const written = slack.requests.slice(before).filter(({ method }) => method.startsWith("chat."));
    expect(written.filter(({ workspaceId }) => workspaceId !== slack.workspace.id)).toEqual([]);
  });
});

/** Goes through the pages that install the bot. Resolves to the status of the last one. */
async function install(serviceUrl: string): Promise<number> {
  const page = await fetch(`${serviceUrl}/slack/install`);
  const link = /href="([^"]+authorize[^"]+)"/.exec(await page.text())?.[1]?.replaceAll("&amp;", "&") ?? "";
  const agreed = await fetch(link, { redirect: "manual" });
  const back = new URL(agreed.headers.get("location") ?? "");
  const cookie = page.headers.getSetCookie()[0]?.split(";")[0] ?? "";
  const done = await fetch(`${serviceUrl}${back.pathname}${back.search}`, { headers: { cookie } });
  return done.status;
}
