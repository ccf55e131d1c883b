import { persist } from "../concurrency/retry.ts";
import type { IsListening } from "../port/catalogue.ts";
import type { Stores } from "../store/keyv.ts";
import { type Channel, createSettingKeys, type SettingKeys, type SettingKeysOptions } from "./keys.ts";
import { SETTING_NAMES, type SettingName, type SettingValues, type Stored } from "./list.ts";

/** A channel's settings. For settings that it lacks, the configuration applies. */
export interface ChannelSettings extends Stored {
  /** False if the settings are unknown, because the store is unavailable. */
  isKnown: boolean;
}

export interface OwnSettings extends Stored, Omit<Channel, "platform"> {}

export interface ChannelInForce extends Channel, Stored {}

/** Settings by channel. A setting expires `ttlMs` after its last use. A damaged value counts as missing. */
export interface Settings {
  /** Never rejects. If the store is unavailable, returns no settings. */
  read(channel: Channel): Promise<ChannelSettings>;
  /**
   * Sets a setting; undefined resets it. If `authorId` is set, erasing that person's data also erases the setting.
   * Resolves to true if the store accepted the change.
   */
  set<Name extends SettingName>(
    channel: Channel,
    name: Name,
    value: SettingValues[Name] | undefined,
    authorId?: string,
  ): Promise<boolean>;
  /** Calls `change` with the stored value and stores the result. Resolves to the same values as `set`. */
  change<Name extends SettingName>(
    channel: Channel,
    name: Name,
    change: (before: Stored[Name]) => SettingValues[Name] | undefined,
  ): Promise<boolean>;
  isListening: IsListening;
  /** Resolves to all channels with settings, sorted by name. Rejects if the store is unavailable. */
  list(): Promise<ChannelInForce[]>;
  /** Erases all settings of a channel. Rejects if the store is unavailable. */
  erase(channel: Channel): Promise<void>;
  exportAuthor(platform: string, authorId: string): Promise<OwnSettings[]>;
}

/** The pause before the only retry. A person waits, and each attempt takes two seconds if the store is unavailable. */
const PAUSES_MS = [200];

export function createSettings(options: SettingKeysOptions & Pick<Stores, "inTurn">): Settings {
  const { log } = options;
  const keys = createSettingKeys(options);
  const inTurn = <T>({ platform, workspaceId, channelId }: Channel, task: (keys: SettingKeys) => Promise<T>) =>
    options.inTurn(`settings:${JSON.stringify([platform, workspaceId, channelId])}`, (open) =>
      task(createSettingKeys({ ...options, open })),
    );

  function keep<Name extends SettingName>(
    channel: Channel,
    name: Name,
    toValue: (keys: SettingKeys) => Promise<SettingValues[Name] | undefined>,
    authorId?: string,
  ): Promise<boolean> {
    const onFailure = (err: unknown) => log.error({ err, ...toFields(channel) }, "a setting could not be stored");
    const act = async (keys: SettingKeys) => {
      const value = await toValue(keys);
      await (value === undefined ? keys.erase(channel, [name]) : keys.write(channel, name, value, authorId));
    };
    return persist(() => inTurn(channel, act), onFailure, PAUSES_MS);
  }

  async function load(channel: Channel, names: readonly SettingName[]): Promise<Stored> {
    const { isAging, ...stored } = await keys.read(channel, names);
    if (!isAging) return stored;
    try {
      // Wait for other changes, so that a refresh cannot overwrite a change made at the same time.
      await inTurn(channel, (keys) => keys.refresh(channel, names));
    } catch (err) {
      log.warn({ err, ...toFields(channel) }, "the TTL of a channel's settings could not be extended");
    }
    return stored;
  }

  return {
    async read(channel) {
      try {
        return { ...(await load(channel, SETTING_NAMES)), isKnown: true };
      } catch (err) {
        log.error({ err, ...toFields(channel) }, "the settings of a channel could not be read");
        return { isKnown: false };
      }
    },
    set: (channel, name, value, authorId) => keep(channel, name, async () => value, authorId),
    change: (channel, name, change) =>
      keep(channel, name, async (keys) => change((await keys.read(channel, [name]))[name])),
    async isListening(channel) {
      try {
        return (await load(channel, ["listens"])).listens === true;
      } catch (err) {
        log.warn({ err, ...toFields(channel) }, "the listen setting of a channel could not be read");
        return false;
      }
    },
    async list() {
      const found: ChannelInForce[] = [];
      for (const channel of await keys.channels()) {
        const { isAging: _, ...stored } = await keys.read(channel, SETTING_NAMES);
        found.push({ ...channel, ...stored });
      }
      return found.toSorted((one, other) => (toName(one) < toName(other) ? -1 : 1));
    },
    erase: (channel) => inTurn(channel, (keys) => keys.erase(channel, SETTING_NAMES)),
    async exportAuthor(platform, authorId) {
      const channels = await keys.ownedBy(platform, authorId);
      return channels.map((channel) => {
        const { platform: _, ...own } = channel;
        return own;
      });
    },
  };
}

function toName({ platform, workspaceId = "", channelId }: Channel): string {
  return `${platform} ${workspaceId} ${channelId}`;
}

function toFields({ platform, workspaceId, channelId }: Channel) {
  return { platform, workspaceId, channelId };
}
