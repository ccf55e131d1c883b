import type { Keyv } from "keyv";
import type { Logger } from "pino";
import { z } from "zod";
import type { ReplyAddress } from "../port/events.ts";
import { toKeyPart } from "../store/key-part.ts";

/** The shapes that the settings store, and the keys they are stored under. */

const NAMESPACE = "settings";
/** A setting that is used is written anew once this share of its time is over: that is seldom, and keeps it alive. */
const REFRESH_SHARE = 0.1;
/** Keys whose damage was logged, so that each is logged once; beyond this many no more are. */
const MAX_LOGGED_KEYS = 1_000;

export type Channel = Pick<ReplyAddress, "platform" | "channelId">;

const modelSchema = z.object({ model: z.string() });
const personaSchema = z.object({ text: z.string(), authorId: z.string() });
const ownedSchema = z.object({ channelId: z.string() });

export type StoredPersona = z.infer<typeof personaSchema>;

/** A channel for which a person wrote the persona; somebody else may have replaced it since. */
export interface Owned {
  key: string;
  /** Undefined when that cannot be read. */
  channelId: string | undefined;
}

/** What is stored for a channel. */
export interface Stored {
  model: string | undefined;
  persona: StoredPersona | undefined;
  /** Some of it was last written so long ago that it should be written anew. */
  isAging: boolean;
}

/**
 * What the settings read and write. A model and a persona have a key each, so that setting one never writes the other
 * back as it was. Every promise rejects when the store does not answer.
 */
export interface SettingKeys {
  read(channel: Channel): Promise<Stored>;
  writeModel(channel: Channel, model: string): Promise<void>;
  writePersona(channel: Channel, persona: StoredPersona): Promise<void>;
  erase(keys: string[]): Promise<void>;
  walkOwned(platform: string, authorId: string): AsyncIterable<Owned>;
}

export function createSettingKeys(open: (namespace: string) => Keyv, ttlMs: number, log: Logger): SettingKeys {
  const keyv = open(NAMESPACE);
  const parse = createParse(log);

  async function readValue<T>(key: string, schema: z.ZodType<T>): Promise<{ value: T | undefined; isAging: boolean }> {
    const raw = await keyv.getRaw(key);
    const value = parse(key, raw?.value, schema);
    const leftMs = (raw?.expires ?? 0) - Date.now();
    return { value, isAging: value !== undefined && leftMs < ttlMs * (1 - REFRESH_SHARE) };
  }

  async function write(values: Record<string, object>): Promise<void> {
    const entries = Object.entries(values);
    await keyv.setMany(entries.map(([key, value]) => ({ key, value: { v: 1, ...value }, ttl: ttlMs })));
  }

  return {
    async read(channel) {
      const [model, persona] = await Promise.all([
        readValue(toModelKey(channel), modelSchema),
        readValue(toPersonaKey(channel), personaSchema),
      ]);
      return { model: model.value?.model, persona: persona.value, isAging: model.isAging || persona.isAging };
    },
    writeModel: (channel, model) => write({ [toModelKey(channel)]: { model } }),
    writePersona(channel, persona) {
      const { platform, channelId } = channel;
      const ownedKey = `${toOwner(platform, persona.authorId)}:${toKeyPart(channelId)}`;
      return write({ [toPersonaKey(channel)]: persona, [ownedKey]: { channelId } });
    },
    async erase(erased) {
      await keyv.deleteMany(erased);
    },
    async *walkOwned(platform, authorId) {
      const owner = toOwner(platform, authorId);
      const iterator = open(`${NAMESPACE}:${owner}`).iterator;
      if (iterator === undefined) throw new TypeError("The store of the settings cannot be walked through.");
      for await (const [part, value] of iterator(undefined) as AsyncIterable<[string, unknown]>) {
        const key = `${owner}:${part}`;
        yield { key, channelId: parse(key, value, ownedSchema)?.channelId };
      }
    },
  };
}

export function toModelKey(channel: Channel): string {
  return `model:${toChannelKey(channel)}`;
}

export function toPersonaKey(channel: Channel): string {
  return `persona:${toChannelKey(channel)}`;
}

/** Names a channel among those of all platforms. */
export function toChannelKey({ platform, channelId }: Channel): string {
  return `${toKeyPart(platform)}:${toKeyPart(channelId)}`;
}

function toOwner(platform: string, authorId: string): string {
  return `by:${toKeyPart(platform)}:${toKeyPart(authorId)}`;
}

/** Reads a stored value. Undefined: it is absent, or damaged or of another version, which is logged once. */
function createParse(log: Logger) {
  const logged = new Set<string>();
  const version = z.object({ v: z.literal(1) });

  return <T>(key: string, value: unknown, schema: z.ZodType<T>): T | undefined => {
    if (value === undefined) return undefined;
    const result = schema.safeParse(value);
    if (result.success && version.safeParse(value).success) return result.data;
    if (!logged.has(key) && logged.size < MAX_LOGGED_KEYS) {
      logged.add(key);
      log.error({ key }, "a stored setting cannot be read and counts as absent");
    }
    return undefined;
  };
}
