import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import type { PasteFile } from "../../../src/port/setup.ts";
import { truncate } from "../../../src/text/truncate.ts";

/** Slack's longest name for an app (https://docs.slack.dev/reference/app-manifest). */
const MAX_NAME = 35;
const PATH = fileURLToPath(new URL("../../../manifest.json", import.meta.url));
export const NEW_APP_URL = "https://api.slack.com/apps?new_app=1";

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
  /** The URL to which Slack sends events. Undefined: Socket Mode. */
  eventsUrl: string | undefined;
}

export function newAppLink(options: ManifestOptions): string {
  const query = new URLSearchParams({ manifest_json: JSON.stringify(toManifest(options)) });
  return `${NEW_APP_URL}&${query.toString()}`;
}

/** The manifest as a file to paste: `manifest.json` itself if nothing in it must change. */
export function toPasteFile(options: ManifestOptions): PasteFile {
  const manifest = toManifest(options);
  const isSame = isDeepStrictEqual(manifest, readManifest());
  return { path: PATH, ...(!isSame && { text: `${JSON.stringify(manifest, null, 2)}\n` }) };
}

function readManifest(): Manifest {
  return JSON.parse(readFileSync(PATH, "utf8")) as Manifest;
}

/** `manifest.json` for a bot with this name. Events come over HTTP if there is a URL. */
function toManifest({ botName, eventsUrl }: ManifestOptions): Manifest {
  const manifest = readManifest();
  manifest.display_information.name = truncate(botName, MAX_NAME, "").trim();
  manifest.features.bot_user.display_name = toMention(botName);
  if (eventsUrl === undefined) return manifest;
  for (const command of manifest.features.slash_commands) command.url = eventsUrl;
  const { settings } = manifest;
  settings.event_subscriptions.request_url = eventsUrl;
  settings.interactivity.request_url = eventsUrl;
  settings.socket_mode_enabled = false;
  return manifest;
}

/** The name for mentions. Slack allows lower-case letters, digits, hyphens, underscores and dots. */
export function toMention(botName: string): string {
  const name = botName
    .toLowerCase()
    .replaceAll(/[^a-z0-9._]+/g, "-")
    .replaceAll(/^-+|-+$/g, "");
  return name || "palaver";
}
