import { createHmac } from "node:crypto";
import type { AdapterModule, EventsAddress, Host, OpenPlatform } from "../../src/port/module.ts";
import { readConfig, type SlackConfig, VARIABLES } from "./config.ts";
import { PLATFORM } from "./ids.ts";
import type { SeveralWorkspaces } from "./install/several-workspaces.ts";
import { EVENTS_PATH, slackStep } from "./setup.ts";

const CHALLENGE = "palaver-doctor";

export const module: AdapterModule<SlackConfig> = {
  platform: PLATFORM,
  name: "Slack",
  switches: ["SLACK_BOT_TOKEN", "SLACK_CLIENT_ID"],
  variables: VARIABLES,
  readConfig,
  describe(config) {
    const { publicUrl } = config;
    const way = config.mode === "socket" ? "Socket Mode" : `HTTP at POST ${publicUrl ?? ""}${EVENTS_PATH}`;
    const where =
      config.oauth === undefined ? "one workspace" : `every workspace that installs it at ${publicUrl}/slack/install`;
    return `${way}, ${where}`;
  },
  create,
  async check(config, { namedGroups }, signal) {
    const { checkSlack } = await import("./check.ts");
    return checkSlack(config, signal, namedGroups);
  },
  eventsAddress: (config) => (config.mode === "http" ? toEventsAddress(config.signingSecret) : undefined),
  setup: { given: ["SLACK_API_URL", "PUBLIC_URL"], toStep: slackStep },
  // Bot, user, refresh and app-level tokens, and URLs that contain a key.
  tokens: [
    /(?<![A-Za-z0-9])xox[a-z](?:\.xox[a-z])?-[\w-]{4,}/,
    /(?<![A-Za-z0-9])xapp-[\w-]{4,}/,
    /(hooks\.slack\.com\/)[^\s"'<>]+/,
  ],
  async preview(markdown) {
    const { toPreview } = await import("./preview.ts");
    return toPreview(markdown);
  },
};

async function create(config: SlackConfig, host: Host): Promise<OpenPlatform> {
  const { createSlackAdapter } = await import("./adapter.ts");
  const several = config.oauth && (await openSeveralWorkspaces(config, config.oauth, host));
  const adapter = createSlackAdapter({
    ...host,
    transport: config,
    installed: several?.installed ?? { botToken: config.botToken ?? "" },
    onUninstalled: several?.onUninstalled,
    apiUrl: config.apiUrl,
    allowedBots: config.allowedBots,
  });
  return { adapter, mounts: [adapter.app, several?.app].filter((app) => app !== undefined) };
}

async function openSeveralWorkspaces(
  { apiUrl, publicUrl = "" }: SlackConfig,
  oauth: NonNullable<SlackConfig["oauth"]>,
  { open, eraseConversations, log, now }: Host,
): Promise<SeveralWorkspaces> {
  const { createSeveralWorkspaces } = await import("./install/several-workspaces.ts");
  return createSeveralWorkspaces({
    ...oauth,
    publicUrl,
    apiUrl,
    open,
    async eraseWorkspace(workspaceId) {
      await eraseConversations({ platform: PLATFORM, workspaceId, prefix: `${PLATFORM}:${workspaceId}:` });
    },
    log,
    now,
  });
}

/** The signed request that Slack sends to a new URL. https://docs.slack.dev/reference/events/url_verification */
function toEventsAddress(signingSecret: string): EventsAddress {
  return {
    path: EVENTS_PATH,
    expected: CHALLENGE,
    toRequest() {
      const body = JSON.stringify({ type: "url_verification", challenge: CHALLENGE, token: "" });
      const seconds = Math.floor(Date.now() / 1_000);
      const signature = createHmac("sha256", signingSecret).update(`v0:${seconds}:${body}`).digest("hex");
      const headers = {
        "content-type": "application/json",
        "x-slack-request-timestamp": String(seconds),
        "x-slack-signature": `v0=${signature}`,
      };
      return { method: "POST", body, headers };
    },
  };
}
