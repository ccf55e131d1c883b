import { describe, expect, test } from "vitest";
import { checkSlack, type SlackCheckOptions } from "../../../adapters/slack/check.ts";
import { OPTIONAL_SCOPES, SCOPES } from "../../../adapters/slack/install/scopes.ts";
import { type Slack, startSlack } from "../../support/slack.ts";

const { signal } = new AbortController();

type Changes = Readonly<Record<string, unknown>>;

function check(slack: Slack, changes: Changes = {}): ReturnType<typeof checkSlack> {
  const { apiUrl, botToken, appToken } = slack;
  const options = { apiUrl, botToken, oauth: undefined, mode: "socket", appToken, ...changes };
  return checkSlack(options as SlackCheckOptions, signal);
}

describe("the check of a Slack installation", () => {
  test("checkSlack tries the token, its scopes, streaming and the socket, and writes nothing", async () => {
    const slack = await startSlack();
    expect(await check(slack)).toEqual([
      { ok: true, what: "The bot token belongs to Palaver in the workspace Acme." },
      { ok: true, what: "The bot token has all scopes of manifest.json." },
      { ok: true, what: "Streaming is available." },
      { ok: true, what: "The app-level token opens sockets (Socket Mode)." },
    ]);
    expect(slack.requests.map(({ method }) => method)).toEqual([
      "auth.test",
      "chat.appendStream",
      "apps.connections.open",
    ]);
    expect(slack.connections()).toBe(0);
  });

  test.each(Object.keys(SCOPES))("checkSlack names the purpose of the missing scope %s", async (missing) => {
    const slack = await startSlack();
    const team = slack.addWorkspace(
      "Bare",
      Object.keys(SCOPES).filter((scope) => scope !== missing),
    );
    const [, scopes] = await check(slack, { botToken: team.botToken });
    const words = `${missing} (${SCOPES[missing]})`;
    expect(scopes).toEqual(
      OPTIONAL_SCOPES.includes(missing)
        ? { ok: true, what: `The bot token has all scopes that it needs. It works without ${words}.` }
        : { ok: false, what: `The bot token lacks ${words}.`, fix: expect.stringContaining("manifest.json") },
    );
  });

  test("checkSlack says what to do about a refused token, and shows no token", async () => {
    const slack = await startSlack();
    const wrong = await check(slack, { botToken: "xoxb-canary", appToken: "xapp-canary" });
    expect(wrong).toEqual([
      {
        ok: false,
        what: "SLACK_BOT_TOKEN: Slack refuses this value (invalid_auth).",
        fix: expect.stringContaining("Copy it"),
      },
      {
        ok: false,
        what: "SLACK_APP_TOKEN: Slack refuses this value (invalid_auth).",
        fix: expect.stringContaining("Copy it"),
      },
    ]);
    expect(JSON.stringify(wrong)).not.toContain("canary");
    const swapped = await check(slack, { appToken: slack.botToken });
    expect(swapped.at(-1)).toMatchObject({ ok: false, what: expect.stringContaining("not_allowed_token_type") });
    slack.revoke();
    expect((await check(slack))[0]).toMatchObject({ ok: false, fix: expect.stringContaining("Install the app again") });
  });

  test.each(["unknown_method", "http404"] as const)(
    "checkSlack accepts a workspace without streaming (%s)",
    async (way) => {
      const slack = await startSlack({ streaming: way });
      expect((await check(slack))[2]).toEqual({ ok: true, what: expect.stringContaining("not available") });
    },
  );

  test("checkSlack reports that Slack is unreachable, or that something else answers", async () => {
    const slack = await startSlack();
    const [away] = await check(slack, { apiUrl: "http://127.0.0.1:1/api/" });
    expect(away).toMatchObject({ ok: false, what: expect.stringMatching(/cannot be reached/) });
    slack.failNext("auth.test", { status: 503 });
    expect((await check(slack))[0]).toMatchObject({ ok: false, what: expect.stringContaining("503") });
    slack.failNext("auth.test", { html: "<p>Welcome</p>" });
    expect((await check(slack))[0]).toMatchObject({ ok: false });
    slack.failNext("auth.test", { retryAfterS: 30 });
    expect((await check(slack))[0]).toMatchObject({ ok: false, what: expect.stringContaining("30 s") });
  });

  test("checkSlack says that only a request can prove a signing secret", async () => {
    const slack = await startSlack();
    const found = await check(slack, { mode: "http", signingSecret: slack.signingSecret });
    expect(found.at(-1)).toMatchObject({ ok: true, what: expect.stringContaining("SLACK_SIGNING_SECRET") });
  });

  test("checkSlack ends when its signal aborts", async () => {
    const slack = await startSlack();
    const { apiUrl, botToken, appToken } = slack;
    const options = { apiUrl, botToken, oauth: undefined, mode: "socket", appToken } as const;
    await expect(checkSlack(options, AbortSignal.abort(new Error("over")))).rejects.toThrow("over");
  });

  test("checkSlack tries a client id and secret without a workspace", async () => {
    const slack = await startSlack();
    const tryClient = (clientId: string, clientSecret: string) =>
      check(slack, { botToken: undefined, oauth: { clientId, clientSecret } });
    const [known] = await tryClient(slack.clientId, slack.clientSecret);
    expect(known).toMatchObject({ ok: true });
    expect((await tryClient("9.9", slack.clientSecret))[0]).toMatchObject({
      ok: false,
      what: expect.stringContaining("SLACK_CLIENT_ID"),
    });
    expect((await tryClient(slack.clientId, "canary"))[0]).toEqual({
      ok: false,
      what: "SLACK_CLIENT_SECRET: Slack refuses this value (bad_client_secret).",
      fix: expect.stringContaining("Basic Information"),
    });
  });
});
