import type { Payload } from "./world.ts";

/** Fields of each event that Discord documents as optional, or as usually present. */
const OPTIONAL: Readonly<Record<string, readonly string[]>> = {
  READY: ["shard", "private_channels"],
  GUILD_CREATE: ["threads", "presences", "stage_instances", "guild_scheduled_events", "soundboard_sounds", "large"],
  MESSAGE_CREATE: [
    "member",
    "channel_type",
    "flags",
    "components",
    "nonce",
    "pinned",
    "edited_timestamp",
    "referenced_message",
  ],
  MESSAGE_UPDATE: ["member", "channel_type", "flags", "components", "nonce", "pinned", "referenced_message"],
  INTERACTION_CREATE: ["channel", "app_permissions", "entitlements", "context", "authorizing_integration_owners"],
};
const OPTIONAL_IN_CHANNELS = ["last_message_id", "permission_overwrites", "parent_id", "topic", "nsfw", "position"];

/** Returns an event without its optional fields. */
export function toSparse(type: string, data: Payload): Payload {
  const sparse = without(data, OPTIONAL[type] ?? []);
  if (type !== "GUILD_CREATE" || !Array.isArray(data["channels"])) return sparse;
  return { ...sparse, channels: data["channels"].map((channel: Payload) => without(channel, OPTIONAL_IN_CHANNELS)) };
}

function without(data: Payload, names: readonly string[]): Payload {
  return Object.fromEntries(Object.entries(data).filter(([name]) => !names.includes(name)));
}
