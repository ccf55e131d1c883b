import type { Slack } from "../slack-sim/control.ts";
import type { Workspace } from "../slack-sim/world.ts";

/** The service's public address. No test connects to it. */
const PUBLIC_URL = "https://bot.example";

/** The environment of a service that several workspaces can install, over Socket Mode. It lacks Slack's address. */
export function toInstallableEnv({ clientId, clientSecret, appToken }: Slack): Record<string, string> {
  return {
    SLACK_CLIENT_ID: clientId,
    SLACK_CLIENT_SECRET: clientSecret,
    SLACK_STATE_SECRET: "a-long-secret-that-signs-the-links",
    SLACK_APP_TOKEN: appToken,
    ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64"),
    PUBLIC_URL,
  };
}

/** Installs the service into a workspace like a browser would, through its public address. Rejects if a step fails. */
export async function installIntoSlack(slack: Slack, serviceUrl: string, workspace: Workspace): Promise<void> {
  slack.oauth.installInto(workspace);
  const page = await fetch(`${serviceUrl}/slack/install`);
  const [cookie = ""] = page.headers.getSetCookie();
  const link = /href="([^"]+authorize[^"]+)"/.exec(await page.text())?.[1]?.replaceAll("&amp;", "&") ?? "";
  const back = (await fetch(link, { redirect: "manual" })).headers.get("location") ?? "";
  if (!back.startsWith(`${PUBLIC_URL}/slack/oauth_redirect?`)) throw new Error(`Slack redirected to ${back}.`);
  const headers = { cookie: cookie.split(";")[0] ?? "" };
  const done = await fetch(back.replace(PUBLIC_URL, serviceUrl), { headers });
  const text = await done.text();
  if (done.status !== 200 || !text.includes(workspace.name)) throw new Error(`${done.status}: ${text}`);
}
