import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { planRun } from "../../../lab/chaos/plan.ts";
import { openSlackStage } from "../../../lab/chaos/slack-stage.ts";
import { eventually } from "../../support/eventually.ts";

test("a command on Slack shows the text of its acknowledgement, and nothing before that", async () => {
  const stage = await openSlackStage({
    ...planRun({ seed: 1, turns: 1, platform: "slack", processes: 1 }),
    places: ["direct"],
  });
  onTestFinished(stage.close);
  const appToken = stage.env(stage.origin)["SLACK_APP_TOKEN"] ?? "";
  const opened = await fetch(`${stage.origin}/api/apps.connections.open`, {
    method: "POST",
    headers: { authorization: `Bearer ${appToken}` },
  });
  const { url } = (await opened.json()) as { url: string };
  const socket = new WebSocket(url);
  onTestFinished(() => socket.terminate());
  await once(socket, "message");
  const acknowledge = async (payload: object) => {
    const [data] = (await once(socket, "message")) as [Buffer];
    const { envelope_id } = JSON.parse(data.toString()) as { envelope_id: string };
    socket.send(JSON.stringify({ envelope_id, payload }));
  };
  const accepted = stage.draw(0, "q1n100000");
  expect(accepted()).toBeUndefined();
  await acknowledge({});
  await eventually(accepted).toBe("");
  const refused = stage.draw(0, "q1n100001");
  await acknowledge({ response_type: "ephemeral", text: "Try again in a minute." });
  await eventually(refused).toBe("Try again in a minute.");
});
