import type { Logger } from "pino";
import { z } from "zod";
import type { ReplyAddress } from "../port/events.ts";
import { readKeyPart, toKeyPart, toOwnerKey } from "../store/key-part.ts";
import type { Stores } from "../store/keyv.ts";
import { createDamageLog, walk } from "../store/values.ts";
import { type AnswerOptions, answerOptions } from "./answer-options.ts";

/** The shapes that the settings store, and the keys they are stored under. */

const NAMESPACE = "settings";
/** A setting in use is written anew, for another whole time to live, once this share of it is over. */
const REFRESH_SHARE = 0.1;

/** The settings of channels, as their keys begin. */
export const SETTING_KINDS = ["model", "persona", "prompts", "options", "servers", "listens"] as const;
type SettingKind = (typeof SETTING_KINDS)[number];

/** Workspaces may have a channel with the same id: Slack's shared ones do. */
export type Channel = Pick<ReplyAddress, "platform" | "workspaceId" | "channelId">;

const modelSchema = z.object({ model: z.string() });
const personaSchema = z.object({ text: z.string(), authorId: z.string() });
const promptsSchema = z.object({ prompts: z.array(z.string()), authorId: z.string() });
const optionsSchema = z.object({ options: answerOptions });
const serversSchema = z.object({ off: z.array(z.string()) });
const listeningSchema = z.object({ listens: z.literal(true) });
const ownedSchema = z.object({ channelId: z.string(), workspaceId: z.string().exactOptional() });

export type StoredPersona = z.infer<typeof personaSchema>;
export type StoredPrompts = z.infer<typeof promptsSchema>;

/** A channel for which a person wrote the persona or the prompts; somebody else may have replaced them since. */
export interface OwnedSetting {
  key: string;
  /** Undefined when that cannot be read. */
  channel: Channel | undefined;
}

/** A channel's settings as they are stored. */
export interface Stored {
  model: string | undefined;
  persona: StoredPersona | undefined;
  /** Suggested to people who begin to talk to the bot. */
  prompts: StoredPrompts | undefined;
  options: AnswerOptions | undefined;
  /** Servers of tools that are switched off. */
  serversOff: readonly string[] | undefined;
  /** Some of it was last written so long ago, or under such an old key, that it should be written anew. */
  isAging: boolean;
}

/** The stored settings, a key each, so that setting one never writes another back. Rejects with the store. */
export interface SettingKeys {
  read(channel: Channel): Promise<Stored>;
  writeModel(channel: Channel, model: string): Promise<void>;
  writePersona(channel: Channel, persona: StoredPersona): Promise<void>;
  writePrompts(channel: Channel, prompts: StoredPrompts): Promise<void>;
  writeOptions(channel: Channel, options: AnswerOptions): Promise<void>;
  writeServersOff(channel: Channel, off: readonly string[]): Promise<void>;
  /** Read by itself, because it is asked for every message of a channel. */
  readListening(channel: Channel): Promise<{ listens: boolean; isAging: boolean }>;
  writeListening(channel: Channel): Promise<void>;
  erase(keys: readonly string[]): Promise<void>;
  walkOwned(platform: string, authorId: string): AsyncIterable<OwnedSetting>;
  /** All channels that have a setting, each once. Costs as much as there are settings. */
  channels(): Promise<Channel[]>;
}

export interface SettingKeysOptions extends Pick<Stores, "open"> {
  ttlMs: number;
  log: Logger;
  /** There, settings stored before keys named the workspace count as absent: their channel is unknown. */
  severalWorkspaces?: ReadonlySet<string>;
}

export function createSettingKeys(options: SettingKeysOptions): SettingKeys {
  const { open, ttlMs, log, severalWorkspaces = new Set() } = options;
  const keyv = open(NAMESPACE);
  const parse = createParse(log);

  async function readValue<T>(key: string, schema: z.ZodType<T>): Promise<{ value: T | undefined; isAging: boolean }> {
    const raw = await keyv.getRaw(key);
    const value = parse(key, raw?.value, schema);
    const leftMs = (raw?.expires ?? 0) - Date.now();
    return { value, isAging: value !== undefined && leftMs < ttlMs * (1 - REFRESH_SHARE) };
  }

  async function readSetting<T>(channel: Channel, kind: SettingKind, schema: z.ZodType<T>) {
    const [key, formerKey] = toSettingKeys(kind, channel);
    const found = await readValue(key, schema);
    if (found.value !== undefined || formerKey === undefined || severalWorkspaces.has(channel.platform)) return found;
    const { value } = await readValue(formerKey, schema);
    return { value, isAging: value !== undefined };
  }

  async function write(values: Record<string, object>, former: readonly (string | undefined)[]): Promise<void> {
    const entries = Object.entries(values);
    await keyv.setMany(entries.map(([key, value]) => ({ key, value: { v: 1, ...value }, ttl: ttlMs })));
    const erased = former.filter((key) => key !== undefined);
    if (erased.length > 0) await keyv.deleteMany(erased);
  }

  /** Writes the value under its own key, and a second key that finds it by its writer. */
  function writeOwned(channel: Channel, [key, formerKey]: SettingKey, value: StoredPersona | StoredPrompts) {
    const { platform, channelId, workspaceId } = channel;
    const [ownedKey, formerOwnedKey] = toKeys(toOwnerKey(platform, value.authorId), channel);
    const owned = { channelId, ...(workspaceId !== undefined && { workspaceId }) };
    return write({ [key]: value, [ownedKey]: owned }, [formerKey, formerOwnedKey]);
  }

  return {
    async read(channel) {
      const [model, persona, options, servers, prompts] = await Promise.all([
        readSetting(channel, "model", modelSchema),
        readSetting(channel, "persona", personaSchema),
        readSetting(channel, "options", optionsSchema),
        readSetting(channel, "servers", serversSchema),
        readSetting(channel, "prompts", promptsSchema),
      ]);
      const isAging = [model, persona, options, servers, prompts].some((setting) => setting.isAging);
      return {
        model: model.value?.model,
        persona: persona.value,
        prompts: prompts.value,
        options: options.value?.options,
        serversOff: servers.value?.off,
        isAging,
      };
    },
    writeModel(channel, model) {
      const [key, formerKey] = toSettingKeys("model", channel);
      return write({ [key]: { model } }, [formerKey]);
    },
    writePersona: (channel, persona) => writeOwned(channel, toSettingKeys("persona", channel), persona),
    writePrompts: (channel, prompts) => writeOwned(channel, toSettingKeys("prompts", channel), prompts),
    writeOptions: (channel, options) => write({ [toSettingKeys("options", channel)[0]]: { options } }, []),
    writeServersOff: (channel, off) => write({ [toSettingKeys("servers", channel)[0]]: { off } }, []),
    async readListening(channel) {
      const { value, isAging } = await readSetting(channel, "listens", listeningSchema);
      return { listens: value !== undefined, isAging };
    },
    writeListening: (channel) => write({ [toSettingKeys("listens", channel)[0]]: { listens: true } }, []),
    async erase(erased) {
      await keyv.deleteMany([...erased]);
    },
    async *walkOwned(platform, authorId) {
      const owner = toOwnerKey(platform, authorId);
      for await (const [part, value] of walk(open(`${NAMESPACE}:${owner}`))) {
        const key = `${owner}:${part}`;
        const owned = parse(key, value, ownedSchema);
        yield { key, channel: owned && { platform, ...owned } };
      }
    },
    async channels() {
      const found = new Map<string, Channel>();
      for await (const [key] of walk(keyv)) {
        const channel = readChannel(key);
        // The part after the kind is the same for all settings of a channel.
        if (channel !== undefined) found.set(key.slice(key.indexOf(":")), channel);
      }
      return [...found.values()];
    },
  };
}

/** The key of a setting, and the one it had before keys named the workspace, where that is another one. */
type SettingKey = [key: string] | [key: string, formerKey: string];

export function toSettingKeys(kind: SettingKind, channel: Channel): SettingKey {
  const keys = toKeys(`${kind}:${toKeyPart(channel.platform)}`, channel);
  // The other keys have named the workspace from the beginning.
  return kind === "model" || kind === "persona" ? keys : [keys[0]];
}

/** Undefined for other keys, and for ids that are too long to be read back. */
function readChannel(key: string): Channel | undefined {
  const [kind = "", ...parts] = key.split(":");
  if (!SETTING_KINDS.some((known) => known === kind) || parts.length < 2 || parts.length > 3) return undefined;
  const [platform, workspaceId, channelId] = (parts.length === 2 ? [parts[0], "", parts[1]] : parts).map((part = "") =>
    readKeyPart(part),
  );
  if (platform === undefined || workspaceId === undefined || channelId === undefined) return undefined;
  return { platform, channelId, ...(workspaceId !== "" && { workspaceId }) };
}

function toKeys(prefix: string, { workspaceId, channelId }: Channel): SettingKey {
  const formerKey = `${prefix}:${toKeyPart(channelId)}`;
  return workspaceId === undefined
    ? [formerKey]
    : [`${prefix}:${toKeyPart(workspaceId)}:${toKeyPart(channelId)}`, formerKey];
}

/** Reads a stored value. Undefined: it is absent, or damaged or of another version. */
function createParse(log: Logger) {
  const logDamage = createDamageLog(log);
  const version = z.object({ v: z.literal(1) });

  return <T>(key: string, value: unknown, schema: z.ZodType<T>): T | undefined => {
    if (value === undefined) return undefined;
    const result = schema.safeParse(value);
    if (result.success && version.safeParse(value).success) return result.data;
    logDamage(key);
    return undefined;
  };
}
