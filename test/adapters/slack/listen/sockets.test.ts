import { describe, expect, test } from "vitest";
import { createSlackAdapter } from "../../../../adapters/slack/index.ts";
import { startSlack } from "../../../simulators/slack/slack.ts";
import { silent } from "../../../support/log.ts";
import { startStage } from "../stage.ts";

const OPEN = "apps.connections.open";

describe("the sockets to Slack", () => {
  test("are two, and each event comes over one of them", async () => {
    const { slack, ada, events, heard } = await startStage();
    expect(slack.connections()).toBe(2);
    ada.dm("hello");
    await heard();
    expect(events).toHaveLength(1);
  });

  test("one that is refreshed loses nothing, and another takes its place at once", async () => {
    const { slack, ada, adapter, events, heard } = await startStage();
    slack.disconnect("refresh_requested", { isOne: true });
    expect(adapter.isConnected()).toBe(true);
    ada.dm("meanwhile");
    await heard();
    expect(events).toHaveLength(1);
    await slack.until(() => slack.connections() === 2, "another socket");
  });

  test("what is being stored while its socket is asked to go is acknowledged there, once", async () => {
    const stored = Promise.withResolvers<void>();
    const { slack, ada, events } = await startStage({ connections: 1, accept: () => stored.promise });
    ada.dm("hello");
    const delivery = await slack.until(() => slack.deliveries[0], "the delivery");
    slack.disconnect("warning");
    await slack.until(() => slack.connections() === 1, "another socket");
    stored.resolve();
    await slack.acknowledged();
    expect(delivery.attempts).toMatchObject([{ isAcknowledged: true }]);
    expect(events).toHaveLength(1);
  });

  test("all of them refreshed under load drop no event", async () => {
    const { slack, ada, events, heard } = await startStage();
    const texts = Array.from({ length: 40 }, (_, index) => `message ${index}`);
    for (const [index, text] of texts.entries()) {
      ada.dm(text);
      if (index % 10 === 5) slack.disconnect("refresh_requested", { completesClose: index % 20 === 5 });
      if (index === 28) slack.dropConnections();
      await slack.until(() => slack.connections() > 0, "a socket");
    }
    await heard();
    const heardTexts = new Set(events.map((event) => (event.kind === "message" ? event.text : "")));
    expect(heardTexts).toEqual(new Set(texts));
  });

  test("cut ones are opened again, however often that fails first", async () => {
    const { slack, ada, adapter, message } = await startStage();
    slack.failNext(OPEN, { cutsConnection: true });
    slack.failNext(OPEN, { status: 503 });
    slack.failNext(OPEN, { error: "internal_error" });
    slack.dropConnections();
    await slack.until(() => slack.connections() === 2, "two sockets");
    expect(adapter.isConnected()).toBe(true);
    ada.dm("hello again");
    expect((await message(0)).text).toBe("hello again");
  });

  test("are opened again when Slack allows it, and not before", async () => {
    const { slack } = await startStage({ connections: 1 });
    slack.failNext(OPEN, { retryAfterS: 1 });
    slack.dropConnections();
    const tries = () => slack.requests.filter(({ method }) => method === OPEN).slice(1);
    await slack.until(() => tries().length === 2 && slack.connections() === 1, "another socket");
    const [refused, taken] = tries();
    expect((taken?.atMs ?? 0) - (refused?.atMs ?? 0)).toBeGreaterThanOrEqual(990);
  });

  test("an envelope without an event is acknowledged, and the next event is heard", async () => {
    const { slack, ada, message } = await startStage();
    const told = slack.reachEventLimit();
    expect(await told.outcome).toMatchObject({ isAcknowledged: true });
    ada.dm("still there?");
    expect((await message(0)).text).toBe("still there?");
  });

  test("a token that is taken no more ends the adapter in plain words, once, and not the process", async () => {
    const reasons: string[] = [];
    const told = Promise.withResolvers<void>();
    const onFatal = (reason: string) => {
      reasons.push(reason);
      told.resolve();
    };
    const { slack, adapter } = await startStage({ onFatal });
    for (let count = 0; count < 4; count++) slack.failNext(OPEN, { error: "invalid_auth" });
    slack.dropConnections();
    await told.promise;
    await slack.until(() => slack.requests.filter(({ method }) => method === OPEN).length >= 4, "the second try");
    expect(reasons).toEqual([expect.stringMatching(/app-level token \(invalid_auth\).*SLACK_APP_TOKEN/)]);
    expect(adapter.isConnected()).toBe(false);
  });

  test("a start without a valid token says what to do", async () => {
    const slack = await startSlack();
    const adapter = createSlackAdapter({
      transport: { mode: "socket", appToken: "xapp-1-wrong" },
      installed: { botToken: slack.botToken },
      markKey: "key",
      apiUrl: slack.apiUrl,
      commands: [],
      listModels: async () => [],
      log: silent,
      onFatal: () => {},
      now: slack.now,
    });
    await expect(adapter.listen(async () => {})).rejects.toThrow(/app-level token \(\w+\).*connections:write/);
    await adapter.close();
  });

  test("none is left after the end, nor one that was being opened", async () => {
    const { slack, adapter } = await startStage();
    slack.slow(OPEN, 200);
    slack.dropConnections();
    await adapter.close();
    await slack.until(() => slack.requests.filter(({ method }) => method === OPEN).length >= 2, "the calls");
    expect(slack.connections()).toBe(0);
    expect(adapter.isConnected()).toBe(false);
  });
});
