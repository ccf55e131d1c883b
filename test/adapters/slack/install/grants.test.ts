import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { createGrants } from "../../../../adapters/slack/install/grants.ts";

/** A Slack that says one thing. */
async function startSaying(status: number, body: string) {
  const heard: string[] = [];
  const server = createServer((request, response) => {
    request.on("data", (chunk: Buffer) => heard.push(chunk.toString()));
    request.on("end", () => response.writeHead(status).end(body));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/`;
  return { heard, grants: createGrants({ apiUrl, clientId: "1.2", clientSecret: "hush" }) };
}

const GRANT = { ok: true, access_token: "xoxb-1", team: { id: "T1", name: "Acme" }, app_id: "A1" };

describe("a grant", () => {
  test("is read, and what was sent for it is as Slack wants it", async () => {
    const { grants, heard } = await startSaying(200, JSON.stringify({ ...GRANT, refresh_token: "r", expires_in: 60 }));
    expect(await grants.exchange("a code", "https://bot.example/back")).toEqual({
      token: "xoxb-1",
      refreshToken: "r",
      expiresInS: 60,
      team: { id: "T1", name: "Acme" },
      appId: "A1",
    });
    expect(Object.fromEntries(new URLSearchParams(heard.join("")))).toEqual({
      client_id: "1.2",
      client_secret: "hush",
      code: "a code",
      redirect_uri: "https://bot.example/back",
    });
  });

  test("for a whole organisation names no workspace", async () => {
    const { grants } = await startSaying(200, JSON.stringify({ ...GRANT, team: null, is_enterprise_install: true }));
    expect(await grants.exchange("c", "u")).not.toHaveProperty("team");
  });
});

test.each([
  ["E1", { enterpriseId: "E1" }],
  [null, {}],
  [undefined, {}],
])("a token is of an organisation where Slack says so: %s", async (enterprise_id, organisation) => {
  const answer = { ok: true, team_id: "T1", enterprise_id, user_id: "U1", bot_id: "B1" };
  const { grants } = await startSaying(200, JSON.stringify(answer));
  expect(await grants.identify("xoxb-1")).toEqual({ teamId: "T1", ...organisation, botUserId: "U1", botId: "B1" });
});

test.each([
  [200, JSON.stringify({ ok: false, error: "invalid_code" }), "invalid_code"],
  [200, JSON.stringify({ ok: false, error: "<script>" }), ""],
  [200, JSON.stringify({ ok: true }), ""],
  [200, "<html>login</html>", ""],
  [500, "", ""],
])("an answer %i %s is a failure without secrets", async (status, body, code) => {
  const { grants } = await startSaying(status, body);
  const failure: unknown = await grants.exchange("a code", "u").catch((error: unknown) => error);
  expect(failure).toMatchObject({ name: "SlackApiError", code });
  expect(String(failure)).not.toMatch(/hush|a code|script|html/);
});

test("a Slack that is away is a failure without secrets", async () => {
  const grants = createGrants({ apiUrl: "http://127.0.0.1:1/api/", clientId: "1.2", clientSecret: "hush" });
  const failure = await grants.identify("xoxb-1").catch(String);
  expect(failure).toMatch(/did not answer auth.test/);
  expect(failure).not.toMatch(/hush|xoxb/);
});
