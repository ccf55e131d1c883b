import type { SetupField, SetupStep, SetupTask } from "../../src/port/setup.ts";
import { type ManifestOptions, NEW_APP_URL, newAppLink, toMention, toPasteFile } from "./install/manifest.ts";

export const EVENTS_PATH = "/slack/events";

const APPS = { label: "Your Slack apps", url: "https://api.slack.com/apps" };

const INSTALL: SetupTask = {
  text: "OAuth & Permissions: press Install, and copy the Bot User OAuth Token. If the button says Request to Install, an admin of the workspace has to approve the app first. If another app has a command of the same name, Slack gives it to the app that was installed last.",
};
const LOOKS: SetupTask = {
  text: "Optional: under Basic Information, Display Information, upload docs/icon.png as the app icon.",
};

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
  hint: "The address where Slack reaches this service: https://…",
  kind: "address",
  isFirst: true,
};

/** Connects one workspace, by Socket Mode or over HTTP. */
export function slackStep({ botName, publicUrl }: { botName: string; publicUrl: string | undefined }): SetupStep {
  const eventsUrl = publicUrl && publicUrl.replace(/\/+$/, "") + EVENTS_PATH;
  const mention = `@${toMention(botName)}`;
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
          createTask({ botName, eventsUrl: undefined }),
          {
            text: "Basic Information, App-Level Tokens: press Generate Token and Scopes, name the token palaver (any name will do), add the scope connections:write, press Generate, and copy the token.",
            link: APPS,
          },
          INSTALL,
          LOOKS,
        ],
        fields: [APP_TOKEN, BOT_TOKEN],
      },
      {
        id: "http",
        label: "HTTP",
        tasks: [
          eventsUrl === undefined
            ? { text: "Fill in the public address first; the app needs it." }
            : createTask({ botName, eventsUrl }),
          INSTALL,
          {
            text: "Once Palaver runs with these values, Slack can reach it: press Retry under Event Subscriptions if Slack asks for that.",
            link: APPS,
          },
          LOOKS,
        ],
        fields: [{ ...PUBLIC_URL, ...(publicUrl !== undefined && { value: publicUrl }) }, SIGNING_SECRET, BOT_TOKEN],
      },
    ],
    greeting: `In Slack, write in a channel: /invite ${mention}, and then: ${mention} hello`,
  };
}

function createTask(options: ManifestOptions): SetupTask {
  return {
    text: "Create the app. Everything is filled in: choose a workspace, then Next and Create.",
    link: { label: "Create the Slack app", url: newAppLink(options) },
    byHand: {
      text: "Create the app: choose From a manifest, then a workspace, and replace the text there with the whole file.",
      url: NEW_APP_URL,
      file: toPasteFile(options),
    },
  };
}
