import type { Keyv } from "keyv";
import type { Logger } from "pino";
import { createKeyedTurns } from "../concurrency/keyed-queue.ts";
import { persist } from "../concurrency/retry.ts";
import { type Channel, createSettingKeys, toChannelKey, toModelKey, toPersonaKey } from "./keys.ts";

/** What a channel has of its own. What is absent is as the service is configured. */
export interface ChannelSettings {
  model?: string;
  /** Stands in for the configured system prompt. */
  persona?: string;
  /** False: the store is out of reach, and what it keeps for the channel is not known. */
  isKnown: boolean;
}

/** What a person wrote for a channel. */
export interface OwnPersona {
  channelId: string;
  persona: string;
}

/**
 * Settings by channel, each kept for `ttlMs` after it was last set or used. A stored value that is damaged, or of
 * another version, counts as absent.
 */
export interface Settings {
  /** Never rejects: where the store is out of reach, nothing is set. */
  read(channel: Channel): Promise<ChannelSettings>;
  /** Undefined takes the setting back. Resolves to whether the change is kept. */
  setModel(channel: Channel, model: string | undefined): Promise<boolean>;
  /** As `setModel`. A persona goes when the person who wrote it is forgotten. */
  setPersona(channel: Channel, persona: string | undefined, authorId: string): Promise<boolean>;
  exportAuthor(platform: string, authorId: string): Promise<OwnPersona[]>;
  forgetAuthor(platform: string, authorId: string): Promise<void>;
}

export interface SettingsOptions {
  /** Namespaces nest, and `setMany` and `deleteMany` do all or nothing: see `Stores`. */
  open(namespace: string): Keyv;
  ttlMs: number;
  log: Logger;
}

/** Somebody waits for the word that it is kept, or is not, and a store that is away takes two seconds to say so. */
const PAUSES_MS = [200];

export function createSettings({ open, ttlMs, log }: SettingsOptions): Settings {
  const keys = createSettingKeys(open, ttlMs, log);
  // What is written anew because it was used must not replace what is set meanwhile.
  const queue = createKeyedTurns();
  const inTurn = <T>(channel: Channel, task: () => Promise<T>) => queue(toChannelKey(channel), task);

  function change(channel: Channel, act: () => Promise<void>): Promise<boolean> {
    const onFailure = (err: unknown) => log.error({ err, ...toFields(channel) }, "a setting could not be stored");
    return inTurn(channel, () => persist(act, onFailure, PAUSES_MS));
  }

  async function keepAlive(channel: Channel): Promise<void> {
    try {
      await inTurn(channel, async () => {
        const { model, persona } = await keys.read(channel);
        if (model !== undefined) await keys.writeModel(channel, model);
        if (persona !== undefined) await keys.writePersona(channel, persona);
      });
    } catch (err) {
      log.warn({ err, ...toFields(channel) }, "the settings of a channel could not be kept for longer");
    }
  }

  return {
    async read(channel) {
      try {
        const { model, persona, isAging } = await keys.read(channel);
        if (isAging) await keepAlive(channel);
        return { ...(model !== undefined && { model }), ...(persona && { persona: persona.text }), isKnown: true };
      } catch (err) {
        log.error({ err, ...toFields(channel) }, "the settings of a channel could not be read");
        return { isKnown: false };
      }
    },
    setModel: (channel, model) =>
      change(channel, () =>
        model === undefined ? keys.erase([toModelKey(channel)]) : keys.writeModel(channel, model),
      ),
    setPersona: (channel, persona, authorId) =>
      change(channel, () =>
        persona === undefined
          ? keys.erase([toPersonaKey(channel)])
          : keys.writePersona(channel, { text: persona, authorId }),
      ),
    async exportAuthor(platform, authorId) {
      const personas: OwnPersona[] = [];
      for await (const { channelId } of keys.walkOwned(platform, authorId)) {
        if (channelId === undefined) continue;
        const { persona } = await keys.read({ platform, channelId });
        if (persona?.authorId === authorId) personas.push({ channelId, persona: persona.text });
      }
      return personas;
    },
    async forgetAuthor(platform, authorId) {
      for await (const { key, channelId } of keys.walkOwned(platform, authorId)) {
        const channel = { platform, channelId: channelId ?? "" };
        await inTurn(channel, async () => {
          const { persona } = await keys.read(channel);
          // What cannot be read goes too: nobody knows that it is somebody else's.
          const isTheirs = persona === undefined || persona.authorId === authorId;
          await keys.erase(isTheirs ? [key, toPersonaKey(channel)] : [key]);
        });
      }
    },
  };
}

function toFields({ platform, channelId }: Channel) {
  return { platform, channelId };
}
