import { describe, expect, test } from "vitest";
import { createClock } from "../../../../lab/slack-sim/clock.ts";
import { createWebClient, errorOf } from "../../../../lab/slack-sim/web-api.ts";
import { type Slack, startSlack } from "../../../support/slack.ts";

async function codeOf(slack: Slack): Promise<string> {
  const back = "http://127.0.0.1:1/slack/oauth_redirect";
  const page = await fetch(`${slack.authorizeUrl}?state=s&redirect_uri=${encodeURIComponent(back)}`, {
    redirect: "manual",
  });
  const location = new URL(page.headers.get("location") ?? "");
  expect(location.searchParams.get("state")).toBe("s");
  return location.searchParams.get("code") ?? "";
}

describe("the simulated methods of oauth", () => {
  test("an app can exchange a code once for the token of its workspace", async () => {
    const slack = await startSlack();
    const other = slack.addWorkspace("Other");
    slack.oauth.installInto(other);
    const client = createWebClient(slack, "");
    const grant = { client_id: slack.clientId, client_secret: slack.clientSecret, code: await codeOf(slack) };
    const answer = await client.oauth.v2.access(grant);
    expect(answer).toMatchObject({ access_token: other.botToken, team: { id: other.id }, bot_user_id: other.bot.id });
    expect(await errorOf(slack, "oauth.v2.access", grant)).toBe("invalid_code");
    expect(await errorOf(slack, "oauth.v2.access", { ...grant, client_secret: "x" })).toBe("bad_client_secret");
    expect(await errorOf(slack, "oauth.v2.access", { ...grant, client_id: "x" })).toBe("invalid_client_id");
    const { team_id } = await createWebClient(slack, other.botToken).auth.test();
    expect(team_id).toBe(other.id);
  });

  test("a rotating token expires, and its refresh token returns the next one", async () => {
    const slack = await startSlack({ clock: createClock({ isFrozen: true }) });
    slack.oauth.rotate(43_200);
    const grant = { client_id: slack.clientId, client_secret: slack.clientSecret };
    const client = createWebClient(slack, "");
    const first = await client.oauth.v2.access({ ...grant, code: await codeOf(slack) });
    expect(first.expires_in).toBe(43_200);
    slack.advance(43_200_000);
    expect(await errorOf(slack, "auth.test", {}, first.access_token)).toBe("token_expired");
    const refresh_token = first.refresh_token ?? "";
    const refresh = { ...grant, grant_type: "refresh_token" as const, refresh_token };
    const second = await client.oauth.v2.access(refresh);
    expect(await errorOf(slack, "auth.test", {}, second.access_token)).toBe("ok");
    expect(await errorOf(slack, "auth.test", {}, first.access_token)).toBe("invalid_auth");
    expect(await errorOf(slack, "oauth.v2.access", refresh)).toBe("invalid_refresh_token");
  });
});
