import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { makeDataDir, type RunningService, startService } from "../../lab/support/service.ts";
import { installIntoSlack, toInstallableEnv } from "../../lab/support/slack-install.ts";
import { type Slack, startSlack } from "../support/slack.ts";
import { answersIn } from "./slack-service.ts";

async function open(slack: Slack, path: string): Promise<RunningService> {
  const service = await startService(path, {
    ...toInstallableEnv(slack),
    SLACK_API_URL: slack.apiUrl,
  });
  onTestFinished(async () => void (await service.end("SIGKILL")));
  await slack.until(() => slack.connections() >= 2, "the service to connect");
  return service;
}

test("workspaces install the bot, share nothing, and leave nothing behind when they remove it", async () => {
  const slack = await startSlack();
  const { path, remove } = await makeDataDir();
  onTestFinished(remove);
  const beta = slack.addWorkspace("Beta");
  const places = [slack.workspace, beta].map((workspace) => {
    const ada = slack.user({ name: `Ada of ${workspace.name}`, workspace });
    return { workspace, ada, channel: slack.channel({ name: "general", members: [ada], workspace }) };
  });
  const service = await open(slack, path);
  for (const { workspace } of places) await installIntoSlack(slack, service.url, workspace);
  for (const { workspace, ada, channel } of places) {
    const asked = ada.mention(channel, `Say: secret of ${workspace.name}`);
    expect(await answersIn(slack, channel, asked)).toEqual([`secret of ${workspace.name}`]);
  }
  expect(await service.end("SIGTERM")).toBe(0);
  expect(JSON.stringify(service.lines)).not.toMatch(/xoxb|xoxe/);

  // An event for a closing socket would reach no process.
  await slack.until(() => slack.connections() === 0, "the end of the sockets");
  const again = await open(slack, path);
  slack.revoke("account_inactive", { isTold: true });
  // Slack has the acknowledgement when the erasure is finished.
  await slack.acknowledged();
  const [unheard, asked] = places.map(({ ada, channel }) => ada.mention(channel, "Say: still here"));
  await slack.acknowledged();
  expect(asked && (await answersIn(slack, asked.channel, asked))).toEqual(["still here"]);
  expect(unheard && slack.answers(unheard.channel, unheard)).toEqual([]);
  expect(await again.end("SIGTERM")).toBe(0);

  const database = new DatabaseSync(join(path, "palaver.sqlite"));
  const kept = JSON.stringify(database.prepare("SELECT * FROM keyv").all());
  database.close();
  expect(kept).toContain("secret of Beta");
  expect(kept).not.toContain("secret of Acme");
  expect(kept).not.toMatch(/xoxb|xoxe/);
});
