import { describe, expect, test } from "vitest";
import { startBolt, type TransportName } from "../../support/bolt-app.ts";
import { startGeneral } from "../../support/slack.ts";

describe.each<TransportName>(["Socket Mode", "HTTP"])("an unmodified Bolt over %s", (transport) => {
  test("an unmodified Bolt app receives a mention and answers in its thread", async () => {
    const { slack, ada, general } = await startGeneral();
    await startBolt(
      slack,
      (app) => {
        app.event("app_mention", async ({ event, say }) => {
          const thread_ts = event.thread_ts ?? event.ts;
          await say({ text: `You said: ${event.text.replace(/^<@\w+> /, "")}`, thread_ts });
        });
      },
      { transport },
    );
    const question = ada.mention(general, "hello");
    await slack.until(() => slack.answers(general, question).length === 1, "the answer");
    expect(slack.texts(general, question)).toEqual(["You said: hello"]);
    await slack.acknowledged();
  });
});

describe("an unmodified Bolt", () => {
  test("an unmodified Bolt app streams an answer with its own streamer", async () => {
    const { slack, ada, general } = await startGeneral();
    await startBolt(slack, (app) => {
      app.event("app_mention", async ({ sayStream, setStatus }) => {
        await setStatus("is thinking");
        const stream = sayStream({ buffer_size: 1 });
        await stream.append({ markdown_text: "**one** " });
        await stream.append({ markdown_text: "two" });
        await stream.stop();
      });
    });
    const question = ada.mention(general, "hello");
    const completed = () => slack.answers(general, question).find(({ stream }) => stream?.state === "completed");
    const answer = await slack.until(completed, "the whole answer");
    expect(answer.states.map(({ shown }) => shown)).toEqual(["**one** ", "**one** two", "**one** two"]);
    expect(slack.statuses(general, question).map(({ status }) => status)).toEqual(["is thinking", ""]);
    await slack.acknowledged();
  });

  test("an unmodified Bolt app does not answer its own messages, although it receives them", async () => {
    const { slack, ada, general } = await startGeneral();
    let heard = 0;
    await startBolt(slack, (app) => {
      app.event("message", async ({ event, say }) => {
        heard += 1;
        if (event.subtype === undefined) await say({ text: "again", thread_ts: event.ts });
      });
    });
    ada.say(general, "hello");
    await slack.until(() => slack.answers(general).length === 1, "the answer");
    await slack.acknowledged();
    expect(slack.deliveries.map(({ name }) => name)).toEqual(["message", "message"]);
    expect(heard).toBe(1);
  });

  test("an unmodified Bolt app uploads and downloads files", async () => {
    const { slack, ada, general } = await startGeneral();
    const bytes = Buffer.from("picture");
    await startBolt(slack, (app) => {
      app.event("message", async ({ event, client }) => {
        if (event.subtype !== "file_share") return;
        const link = event.files?.[0]?.url_private ?? "";
        const given = await fetch(link, { headers: { authorization: `Bearer ${slack.botToken}` } });
        const file = Buffer.concat([Buffer.from("copy of "), Buffer.from(await given.arrayBuffer())]);
        await client.filesUploadV2({ channel_id: event.channel, thread_ts: event.ts, file, filename: "copy.png" });
      });
    });
    const question = ada.upload(general, [{ name: "cat.png", bytes }], "copy this");
    const [answer] = await slack.until(
      () => slack.answers(general, question).length === 1 && slack.answers(general, question),
      "the picture",
    );
    expect(String(Buffer.from(answer?.content.files[0]?.bytes ?? []))).toBe("copy of picture");
    await slack.acknowledged();
  });

  test("an unmodified Bolt app knows the workspace of an event", async () => {
    const { slack } = await startGeneral();
    const other = slack.addWorkspace("Other");
    const eve = slack.user({ name: "Eve", workspace: other });
    const heard: Array<string | undefined> = [];
    await startBolt(slack, (app) => {
      app.event("message", async ({ context }) => void heard.push(context.teamId));
    });
    eve.dm("hello");
    await slack.acknowledged();
    expect(heard).toEqual([slack.deliveries[0]?.payload["team_id"]]);
  });

  test("an unmodified Bolt app reconnects after a refresh, and receives the events sent meanwhile", async () => {
    const { slack, ada, general } = await startGeneral();
    const heard: string[] = [];
    await startBolt(
      slack,
      (app) => {
        app.event("message", async ({ event }) => void heard.push("text" in event ? (event.text ?? "") : ""));
      },
      { clientPingTimeout: 1_000 },
    );
    slack.disconnect("refresh_requested");
    expect(slack.connections()).toBe(0);
    ada.say(general, "in the gap");
    await slack.until(() => slack.connections() === 1, "a new connection");
    await slack.acknowledged();
    expect(heard).toEqual(["in the gap"]);
  });
});
