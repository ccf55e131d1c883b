import { persist } from "../concurrency/retry.ts";
import type { IsListening } from "../port/catalogue.ts";
import type { Stores } from "../store/keyv.ts";
import { type AnswerOptions, changeOptions, type OptionChanges } from "./answer-options.ts";
import {
  type Channel,
  createSettingKeys,
  SETTING_KINDS,
  type SettingKeys,
  type SettingKeysOptions,
  type Stored,
  toSettingKeys,
} from "./keys.ts";

/** A channel's own settings. An absent one is as the service is configured. */
export interface ChannelSettings {
  model?: string;
  /** Stands in for the configured system prompt. */
  persona?: string;
  /** Suggested to people who begin to talk to the bot; absent: the usual ones. */
  prompts?: readonly string[];
  options?: AnswerOptions;
  /** Servers of tools that are switched off. */
  serversOff?: readonly string[];
  /** False: the store is out of reach, and what it keeps for the channel is not known. */
  isKnown: boolean;
}

/** The persona and the prompts that a person wrote for a channel. */
export interface OwnPersona extends Pick<Channel, "workspaceId" | "channelId"> {
  persona?: string;
  prompts?: readonly string[];
}

export interface ChannelInForce extends Channel, Omit<ChannelSettings, "isKnown"> {
  listens: boolean;
}

/** Settings by channel, kept for `ttlMs` after last use. A damaged value counts as absent. */
export interface Settings {
  /** Never rejects: where the store is out of reach, nothing is set. */
  read(channel: Channel): Promise<ChannelSettings>;
  /** Undefined takes the setting back. Resolves to whether the change is kept. */
  setModel(channel: Channel, model: string | undefined): Promise<boolean>;
  /** Like `setModel`. A persona goes when the person who wrote it is forgotten. */
  setPersona(channel: Channel, persona: string | undefined, authorId: string): Promise<boolean>;
  setPrompts(channel: Channel, prompts: readonly string[] | undefined, authorId: string): Promise<boolean>;
  /** Changes some of the options and leaves the others; undefined takes all back. Resolves as `setModel`. */
  setOptions(channel: Channel, changes: OptionChanges | undefined): Promise<boolean>;
  /** Switches a server of tools off, or on again. Resolves as `setModel`. */
  switchServer(channel: Channel, server: string, isOn: boolean): Promise<boolean>;
  isListening: IsListening;
  /** Has the bot answer everything in the channel, or only who mentions it. Resolves as `setModel`. */
  setListening(channel: Channel, listens: boolean): Promise<boolean>;
  /** Channels that have settings of their own, by their names. Rejects when the store does not answer. */
  list(): Promise<ChannelInForce[]>;
  /** Erases all settings of a channel. Rejects when the store does not answer. */
  erase(channel: Channel): Promise<void>;
  exportAuthor(platform: string, authorId: string): Promise<OwnPersona[]>;
  forgetAuthor(platform: string, authorId: string): Promise<void>;
}

/** Two attempts at most: a person waits, and a store that is away takes two seconds to say so. */
const PAUSES_MS = [200];

export function createSettings(options: SettingKeysOptions & Pick<Stores, "inTurn">): Settings {
  const { log } = options;
  const keys = createSettingKeys(options);
  // Keeping a setting alive must not replace one that is set meanwhile.
  // Without the workspace: settings from before keys named it go to the first workspace that uses them.
  const inTurn = <T>({ platform, channelId }: Channel, task: () => Promise<T>) =>
    options.inTurn(`settings:${JSON.stringify([platform, channelId])}`, task);

  function change(channel: Channel, act: () => Promise<void>): Promise<boolean> {
    const onFailure = (err: unknown) => log.error({ err, ...toFields(channel) }, "a setting could not be stored");
    return persist(() => inTurn(channel, act), onFailure, PAUSES_MS);
  }

  async function keepAlive(channel: Channel): Promise<void> {
    try {
      await inTurn(channel, async () => {
        const { model, persona, prompts, options, serversOff } = await keys.read(channel);
        if (serversOff !== undefined) await keys.writeServersOff(channel, serversOff);
        if (model !== undefined) await keys.writeModel(channel, model);
        if (options !== undefined) await keys.writeOptions(channel, options);
        if (persona !== undefined) await keys.writePersona(channel, persona);
        if (prompts !== undefined) await keys.writePrompts(channel, prompts);
      });
    } catch (err) {
      log.warn({ err, ...toFields(channel) }, "the settings of a channel could not be kept for longer");
    }
  }

  async function read(channel: Channel): Promise<ChannelSettings> {
    try {
      const stored = await keys.read(channel);
      if (stored.isAging) await keepAlive(channel);
      return { ...toOwn(stored), isKnown: true };
    } catch (err) {
      log.error({ err, ...toFields(channel) }, "the settings of a channel could not be read");
      return { isKnown: false };
    }
  }

  return {
    read,
    setModel: (channel, model) =>
      change(channel, () =>
        model === undefined ? keys.erase(toSettingKeys("model", channel)) : keys.writeModel(channel, model),
      ),
    setPersona: (channel, persona, authorId) =>
      change(channel, () =>
        persona === undefined
          ? keys.erase(toSettingKeys("persona", channel))
          : keys.writePersona(channel, { text: persona, authorId }),
      ),
    setPrompts: (channel, prompts, authorId) =>
      change(channel, () =>
        prompts === undefined
          ? keys.erase(toSettingKeys("prompts", channel))
          : keys.writePrompts(channel, { prompts: [...prompts], authorId }),
      ),
    setOptions: (channel, changes) =>
      change(channel, async () => {
        const before = changes && (await keys.read(channel)).options;
        const options = changes && changeOptions(before ?? {}, changes);
        if (options === undefined) await keys.erase(toSettingKeys("options", channel));
        else await keys.writeOptions(channel, options);
      }),
    switchServer: (channel, server, isOn) =>
      change(channel, async () => {
        const { serversOff = [] } = await keys.read(channel);
        const others = serversOff.filter((name) => name !== server);
        const off = isOn ? others : [...others, server];
        if (off.length === 0) await keys.erase(toSettingKeys("servers", channel));
        else await keys.writeServersOff(channel, off);
      }),
    async isListening(channel) {
      try {
        const { listens, isAging } = await keys.readListening(channel);
        if (isAging) await change(channel, () => keys.writeListening(channel));
        return listens;
      } catch (err) {
        log.warn({ err, ...toFields(channel) }, "the listen setting of a channel could not be read");
        return false;
      }
    },
    setListening: (channel, listens) =>
      change(channel, () => (listens ? keys.writeListening(channel) : keys.erase(toSettingKeys("listens", channel)))),
    async list() {
      const found: ChannelInForce[] = [];
      for (const channel of await keys.channels()) {
        const { listens } = await keys.readListening(channel);
        found.push({ ...channel, ...toOwn(await keys.read(channel)), listens });
      }
      return found.toSorted((one, other) => (toName(one) < toName(other) ? -1 : 1));
    },
    erase: (channel) =>
      inTurn(channel, () => keys.erase(SETTING_KINDS.flatMap((kind) => toSettingKeys(kind, channel)))),
    ...createOwned(keys, inTurn),
  };
}

type InTurn = <T>(channel: Channel, task: () => Promise<T>) => Promise<T>;

/** Personas and prompts, by the people who wrote them. */
function createOwned(keys: SettingKeys, inTurn: InTurn): Pick<Settings, "exportAuthor" | "forgetAuthor"> {
  return {
    async exportAuthor(platform, authorId) {
      const personas: OwnPersona[] = [];
      for await (const { channel } of keys.walkOwned(platform, authorId)) {
        if (channel === undefined) continue;
        const { platform: _, ...place } = channel;
        const { persona, prompts } = await keys.read(channel);
        const own = {
          ...(persona?.authorId === authorId && { persona: persona.text }),
          ...(prompts?.authorId === authorId && { prompts: prompts.prompts }),
        };
        if (Object.keys(own).length > 0) personas.push({ ...place, ...own });
      }
      return personas;
    },
    async forgetAuthor(platform, authorId) {
      for await (const { key, channel = { platform, channelId: "" } } of keys.walkOwned(platform, authorId)) {
        await inTurn(channel, async () => {
          const { persona, prompts } = await keys.read(channel);
          // Unreadable values go too: they may be this person's.
          const isTheirs = (own?: { authorId: string }) => own === undefined || own.authorId === authorId;
          const ofPersona = isTheirs(persona) ? [toSettingKeys("persona", channel)[0]] : [];
          const ofPrompts = isTheirs(prompts) ? toSettingKeys("prompts", channel) : [];
          await keys.erase([key, ...ofPersona, ...ofPrompts]);
        });
      }
    },
  };
}

function toOwn({ model, persona, prompts, options, serversOff }: Stored): Omit<ChannelSettings, "isKnown"> {
  return { model, persona: persona?.text, prompts: prompts?.prompts, options, serversOff };
}

function toName({ platform, workspaceId = "", channelId }: Channel): string {
  return `${platform} ${workspaceId} ${channelId}`;
}

function toFields({ platform, workspaceId, channelId }: Channel) {
  return { platform, workspaceId, channelId };
}
