import type { SetupField, SetupStep, SetupTask } from "../../src/port/setup.ts";
import { newAppLink } from "./install/manifest.ts";

const EVENTS_PATH = "/slack/events";

const INSTALL: SetupTask = {
  text: "Under OAuth & Permissions, choose Install to Workspace, then copy the Bot User OAuth Token.",
};
const INVITE: SetupTask = { text: "When it runs, invite it in a channel with /invite, or write to it directly." };

const BOT_TOKEN: SetupField = {
  name: "SLACK_BOT_TOKEN",
  label: "Bot token",
  hint: "OAuth & Permissions: Bot User OAuth Token, xoxb-…",
  kind: "secret",
};
const APP_TOKEN: SetupField = {
  name: "SLACK_APP_TOKEN",
  label: "App-level token",
  hint: "Basic Information: App-Level Tokens, xapp-…",
  kind: "secret",
};
const SIGNING_SECRET: SetupField = {
  name: "SLACK_SIGNING_SECRET",
  label: "Signing secret",
  hint: "Basic Information: App Credentials, Signing Secret.",
  kind: "secret",
};
const PUBLIC_URL: SetupField = {
  name: "PUBLIC_URL",
  label: "Public address",
  hint: "This service as Slack reaches it: https://…",
  kind: "address",
  isFirst: true,
};

/** Connects one workspace, over Socket Mode or by HTTP. */
export function slackStep({ botName, publicUrl }: { botName: string; publicUrl: string | undefined }): SetupStep {
  const eventsUrl = publicUrl && publicUrl.replace(/\/+$/, "") + EVENTS_PATH;
  const create = (url: string): SetupTask => ({
    text: "Make the app: everything is filled in, so choose a workspace and press Create.",
    link: { label: "Make the Slack app", url },
  });
  return {
    id: "slack",
    name: "Slack",
    title: "Connect Slack",
    summary: "People mention the bot in channels, or write to it directly.",
    ways: [
      {
        id: "socket",
        label: "Socket Mode",
        tasks: [
          create(newAppLink({ botName, eventsUrl: undefined })),
          {
            text: "Under Basic Information, App-Level Tokens, choose Generate Token and Scopes, and add the scope connections:write.",
            link: { label: "Your Slack apps", url: "https://api.slack.com/apps" },
          },
          INSTALL,
          INVITE,
        ],
        fields: [APP_TOKEN, BOT_TOKEN],
      },
      {
        id: "http",
        label: "HTTP",
        tasks: [
          eventsUrl === undefined
            ? { text: "Fill in the public address first: the app is made for it." }
            : create(newAppLink({ botName, eventsUrl })),
          INSTALL,
          {
            text: "Once Palaver runs with these values, Slack can reach it: press Retry under Event Subscriptions if it asks for that.",
            link: { label: "Your Slack apps", url: "https://api.slack.com/apps" },
          },
          INVITE,
        ],
        fields: [{ ...PUBLIC_URL, ...(publicUrl !== undefined && { value: publicUrl }) }, SIGNING_SECRET, BOT_TOKEN],
      },
    ],
  };
}
