import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { verifySlackRequest } from "@slack/bolt";
import { describe, expect, onTestFinished, test } from "vitest";
import { createClock } from "../../../lab/slack-sim/clock.ts";
import { signatureHeaders } from "../../../lab/slack-sim/http-delivery.ts";
import type { Limits } from "../../../lab/slack-sim/limits.ts";
import type { Json } from "../../../lab/slack-sim/world.ts";
import { startBolt } from "../../support/bolt-app.ts";
import { startSlack } from "../../support/slack.ts";

interface Received {
  headers: IncomingMessage["headers"];
  body: string;
}

type Answer = (response: ServerResponse, count: number) => void;

async function startEndpoint(answer: Answer = (response) => response.end(), limits: Partial<Limits> = {}) {
  const clock = createClock({ isFrozen: true });
  const slack = await startSlack({ clock, limits });
  const ada = slack.user({ name: "Ada" });
  const received: Received[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      received.push({ headers: request.headers, body: await text(request) });
      answer(response, received.length);
    })();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/slack/events`;
  slack.deliverTo(url);
  return { slack, ada, received };
}

describe("HTTP delivery", () => {
  test("Bolt accepts signed deliveries, and refuses forged or old ones", async () => {
    const slack = await startSlack();
    const body = JSON.stringify({ type: "url_verification", challenge: "c", token: "t" });
    await startBolt(slack, () => {}, { transport: "HTTP" });
    const nowS = Math.floor(Date.now() / 1000);
    const send = async (headers: Record<string, string>) => {
      const request = { method: "POST", body, headers: { "content-type": "application/json", ...headers } };
      return (await fetch(slack.deliveryUrl() ?? "", request)).status;
    };
    expect(await send(signatureHeaders(slack.signingSecret, body))).toBe(200);
    expect(await send(signatureHeaders("another secret", body))).toBe(401);
    expect(await send(signatureHeaders(slack.signingSecret, body, nowS - 400))).toBe(401);
    expect(await send({})).toBe(401);
  });

  test("an event is delivered as JSON with a valid signature", async () => {
    const { slack, ada, received } = await startEndpoint();
    ada.dm("héllo");
    await slack.acknowledged();
    const [{ headers, body } = { headers: {}, body: "" }] = received;
    expect(headers["content-type"]).toBe("application/json");
    const verify = (body: string) =>
      verifySlackRequest({
        signingSecret: slack.signingSecret,
        body,
        headers: {
          "x-slack-signature": String(headers["x-slack-signature"]),
          "x-slack-request-timestamp": Number(headers["x-slack-request-timestamp"]),
        },
      });
    verify(body);
    expect(() => verify(`${body} `)).toThrow(/signature mismatch/);
    expect(headers).not.toHaveProperty("x-slack-retry-num");
    expect(JSON.parse(body)).toMatchObject({
      type: "event_callback",
      team_id: slack.workspace.id,
      authorizations: [{ team_id: slack.workspace.id, user_id: slack.workspace.bot.id, is_bot: true }],
      event: { type: "message", channel_type: "im", text: "héllo" },
    });
  });

  test("a command is delivered as a form, and an interaction as a form with JSON in it", async () => {
    const { ada, received } = await startEndpoint();
    await ada.command("/imagine", "a cat & a dog", ada.direct());
    await ada.shortcut("draw");
    expect(received.map(({ headers }) => headers["content-type"])).toEqual([
      "application/x-www-form-urlencoded",
      "application/x-www-form-urlencoded",
    ]);
    const [command, shortcut] = received.map(({ body }) => new URLSearchParams(body));
    expect(command?.get("text")).toBe("a cat &amp; a dog");
    expect(command?.get("is_enterprise_install")).toBe("false");
    expect([...(command?.keys() ?? [])].filter((name) => /files|ts$/.test(name))).toEqual([]);
    expect(JSON.parse(shortcut?.get("payload") ?? "")).toMatchObject({ type: "shortcut", callback_id: "draw" });
  });

  test("the simulator repeats a refused event at once, after one minute, and after five more, with its reason", async () => {
    const { slack, ada, received } = await startEndpoint((response) => response.writeHead(500).end());
    slack.allow("late-ack");
    ada.dm("hi");
    await slack.until(() => received.length === 2, "the first retry");
    for (const [count, pauseMs] of [
      [3, 60_000],
      [4, 300_000],
    ] as const) {
      await slack.until(() => slack.deliveries[0]?.attempts.length === count - 1, "the answer");
      slack.advance(pauseMs - 1);
      expect(received.length).toBe(count - 1);
      slack.advance(1);
      await slack.until(() => slack.deliveries[0]?.attempts.length === count, "the next retry");
    }
    await slack.acknowledged();
    expect(received.map(({ headers }) => [headers["x-slack-retry-num"], headers["x-slack-retry-reason"]])).toEqual([
      [undefined, undefined],
      ["1", "http_error"],
      ["2", "http_error"],
      ["3", "http_error"],
    ]);
    const ids = received.map(({ body }) => (JSON.parse(body) as Json)["event_id"]);
    expect(new Set(ids).size).toBe(1);
    expect(slack.violations.at(-1)?.sentence).toMatch(/was abandoned: the answer was 500/);
  });

  test("the simulator records a late acknowledgement as a violation, and repeats the event", async () => {
    const { slack, ada, received } = await startEndpoint((response, count) => void (count > 1 && response.end()), {
      // Even a busy machine acknowledges the second delivery in time.
      ackMs: 1_000,
    });
    ada.dm("hi");
    await slack.acknowledged();
    expect(received[1]?.headers).toMatchObject({ "x-slack-retry-num": "1", "x-slack-retry-reason": "http_timeout" });
    expect(slack.violations.map(({ kind }) => kind)).toEqual(["late-ack"]);
    slack.allow("late-ack");
  });

  test("a response can ask for no retry", async () => {
    const { slack, ada, received } = await startEndpoint((response) =>
      response.writeHead(500, { "x-slack-no-retry": "1" }).end(),
    );
    slack.allow("late-ack");
    ada.dm("hi");
    await slack.acknowledged();
    expect(received.length).toBe(1);
  });

  test("a command that is not answered in time fails once for the person", async () => {
    const { slack, ada } = await startEndpoint(() => {}, { ackMs: 30 });
    slack.allow("late-ack");
    expect(await ada.command("/imagine", "x", ada.direct())).toEqual({ isAcknowledged: false, response: undefined });
    expect(slack.deliveries.map(({ attempts }) => attempts.length)).toEqual([1]);
  });

  test("a command's acknowledgement is shown to the person", async () => {
    const { slack, ada } = await startEndpoint((response, count) =>
      response.end(count === 1 ? "Drawing…" : JSON.stringify({ response_type: "in_channel", text: "Here" })),
    );
    const general = slack.channel({ name: "general", members: [ada], hasApp: false });
    await ada.command("/imagine", "x", general);
    await ada.command("/imagine", "y", general);
    expect(slack.ephemerals(general, ada.id).map(({ shown }) => shown)).toEqual(["Drawing…"]);
    expect(slack.texts(general)).toEqual(["Here"]);
  });

  test("an app that is down breaks no rule, and receives the event when it is up", async () => {
    const { slack, ada, received } = await startEndpoint((response, count) =>
      count === 1 ? response.socket?.destroy() : response.end(),
    );
    ada.dm("hi");
    await slack.acknowledged();
    expect(received[1]?.headers["x-slack-retry-reason"]).toBe("connection_failed");
  });
});
