import { readFileSync } from "node:fs";
import { truncate } from "../../../src/text/truncate.ts";

/** Longest name that Slack takes for an app (https://docs.slack.dev/reference/app-manifest). */
const MAX_NAME = 35;

interface Manifest {
  display_information: { name: string };
  features: { bot_user: { display_name: string }; slash_commands: Array<{ command: string; url?: string }> };
  settings: {
    event_subscriptions: { request_url?: string };
    interactivity: { request_url?: string };
    socket_mode_enabled: boolean;
  };
}

export interface ManifestOptions {
  botName: string;
  /** Events come to this address by HTTP; undefined: over Socket Mode. */
  eventsUrl: string | undefined;
}

/** The link at which Slack makes the app, with everything `manifest.json` asks for filled in. */
export function newAppLink(options: ManifestOptions): string {
  const query = new URLSearchParams({ new_app: "1", manifest_json: JSON.stringify(toManifest(options)) });
  return `https://api.slack.com/apps?${query.toString()}`;
}

/** `manifest.json` for a bot of this name, and for events by HTTP where an address is given. */
function toManifest({ botName, eventsUrl }: ManifestOptions): Manifest {
  const manifest = JSON.parse(readFileSync(new URL("../../../manifest.json", import.meta.url), "utf8")) as Manifest;
  manifest.display_information.name = truncate(botName, MAX_NAME, "").trim();
  const mention = toMention(botName);
  if (mention !== "") manifest.features.bot_user.display_name = mention;
  if (eventsUrl === undefined) return manifest;
  for (const command of manifest.features.slash_commands) command.url = eventsUrl;
  const { settings } = manifest;
  settings.event_subscriptions.request_url = eventsUrl;
  settings.interactivity.request_url = eventsUrl;
  settings.socket_mode_enabled = false;
  return manifest;
}

/** The name that people mention: Slack takes small letters, digits, hyphens, underscores and points. */
function toMention(botName: string): string {
  return botName
    .toLowerCase()
    .replaceAll(/[^a-z0-9._]+/g, "-")
    .replaceAll(/^-+|-+$/g, "");
}
