import type { Logger } from "pino";
import { z } from "zod";
import type { ReplyAddress } from "../port/events.ts";
import { readKeyPart, toKeyPart } from "../store/key-part.ts";
import type { Stores } from "../store/keyv.ts";
import { createDamageLog, walk } from "../store/values.ts";
import { SETTING_NAMES, SETTINGS, type SettingName, type SettingValues, type Stored } from "./list.ts";

const NAMESPACE = "settings";
/** Reading a setting restores its full TTL, once this share of the TTL has passed. */
const REFRESH_SHARE = 0.1;

/** Includes the workspace, because a channel that two workspaces share has the same id in both. */
export type Channel = Pick<ReplyAddress, "platform" | "workspaceId" | "channelId">;

const stored = z.object({
  value: z.unknown(),
  /** The author, if erasing the author's data must also erase the setting. */
  authorId: z.string().exactOptional(),
  /** When the setting was written, by the store's clock. */
  at: z.number(),
});

/**
 * Stores each setting under its own key, so that a change never overwrites another setting. Every method rejects if the
 * store is unavailable.
 */
export interface SettingKeys {
  /** `isAging` is true if a value is old enough for `refresh`. */
  read(channel: Channel, names: readonly SettingName[]): Promise<Stored & { isAging: boolean }>;
  /** If `authorId` is set, erasing that person's data also erases the setting. */
  write<Name extends SettingName>(
    channel: Channel,
    name: Name,
    value: SettingValues[Name],
    authorId?: string,
  ): Promise<void>;
  /** Rewrites the stored settings with their full TTL. A setting that is erased at the same time stays erased. */
  refresh(channel: Channel, names: readonly SettingName[]): Promise<void>;
  erase(channel: Channel, names: readonly SettingName[]): Promise<void>;
  /** Resolves to the settings that a person wrote, by channel. */
  ownedBy(platform: string, authorId: string): Promise<Array<Channel & Stored>>;
  /** Resolves to all channels with a setting, each once. The cost grows with the number of settings. */
  channels(): Promise<Channel[]>;
}

export interface SettingKeysOptions extends Pick<Stores, "open" | "now"> {
  ttlMs: number;
  log: Logger;
}

export function createSettingKeys({ open, ttlMs, now, log }: SettingKeysOptions): SettingKeys {
  const entries = open(NAMESPACE);
  const logDamage = createDamageLog(log);

  function parse(name: SettingName, key: string, given: unknown): Stored {
    if (given === undefined) return {};
    const { success, data } = SETTINGS[name].schema.safeParse(stored.safeParse(given).data?.value);
    if (!success) logDamage(key);
    return success ? { [name]: data } : {};
  }

  function isAging(value: unknown): boolean {
    return now() - (stored.safeParse(value).data?.at ?? Infinity) > ttlMs * REFRESH_SHARE;
  }

  function toEntry({ platform }: Channel, key: string, { value, authorId }: z.infer<typeof stored>) {
    const owner = authorId === undefined ? undefined : { platform, id: authorId };
    return { key, value: { value, ...(authorId !== undefined && { authorId }), at: now() }, ttlMs, owner };
  }

  return {
    async read(channel, names) {
      const keys = names.map((name) => toKey(name, channel));
      const values: unknown[] = await entries.getMany<unknown>(keys);
      const found = names.map((name, index) => parse(name, keys[index] ?? "", values[index]));
      return { ...Object.assign({}, ...found), isAging: values.some(isAging) };
    },
    async write(channel, name, value, authorId) {
      const given = { value, at: now(), ...(authorId !== undefined && { authorId }) };
      await entries.write([toEntry(channel, toKey(name, channel), given)]);
    },
    async refresh(channel, names) {
      const keys = names.map((name) => toKey(name, channel));
      const values: unknown[] = await entries.getMany<unknown>(keys);
      const kept = keys.flatMap((key, index) => {
        const { data } = stored.safeParse(values[index]);
        return data === undefined ? [] : [{ ...toEntry(channel, key, data), isRewrite: true as const }];
      });
      await entries.write(kept);
    },
    erase: async (channel, names) => void (await entries.deleteMany(names.map((name) => toKey(name, channel)))),
    async ownedBy(platform, id) {
      const found = new Map<string, Channel & Stored>();
      for await (const [key, value] of entries.entriesOf({ owner: { platform, id } })) {
        const known = readKey(key);
        if (known === undefined) continue;
        const others = found.get(toPlace(key));
        found.set(toPlace(key), { ...known.channel, ...others, ...parse(known.name, key, value) });
      }
      return [...found.values()];
    },
    async channels() {
      const found = new Map<string, Channel>();
      for await (const [key] of walk(entries)) {
        const channel = readKey(key)?.channel;
        if (channel !== undefined) found.set(toPlace(key), channel);
      }
      return [...found.values()];
    },
  };
}

function toKey(name: SettingName, { platform, workspaceId = "", channelId }: Channel): string {
  return [name, ...[platform, workspaceId, channelId].map(toKeyPart)].join(":");
}

/** Undefined if the key has an id that is too long to be parsed. */
function readKey(key: string): { name: SettingName; channel: Channel } | undefined {
  const [first, ...parts] = key.split(":");
  const name = SETTING_NAMES.find((known) => known === first);
  const [platform, workspaceId, channelId] = parts.map(readKeyPart);
  if (name === undefined || platform === undefined || workspaceId === undefined || channelId === undefined) {
    return undefined;
  }
  return { name, channel: { platform, channelId, ...(workspaceId !== "" && { workspaceId }) } };
}

/** Returns the part of a key after the setting's name. All settings of a channel have the same part. */
function toPlace(key: string): string {
  return key.slice(key.indexOf(":"));
}
