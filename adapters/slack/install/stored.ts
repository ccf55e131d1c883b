import type { Keyv } from "keyv";
import type { Logger } from "pino";
import { z } from "zod";
import { createSeal } from "./sealed.ts";

/** Other processes change installations too: what was read is believed for so long. */
const CACHE_MS = 60_000;
const MAX_CACHED = 1_000;

const schema = z.object({
  version: z.literal(1),
  teamId: z.string(),
  enterpriseId: z.string().optional(),
  botUserId: z.string(),
  botId: z.string(),
  token: z.string(),
  refreshToken: z.string().optional(),
  /** Unix milliseconds. */
  expiresAt: z.number().optional(),
  installedAt: z.number(),
});

/** The bot in one workspace that installed it. */
export type Installation = Omit<z.infer<typeof schema>, "version">;

/** Installations as they are stored, sealed, and as they were read a moment ago. */
export interface Shelf {
  /** What was read a moment ago. */
  peek(teamId: string): Installation | undefined;
  /** Reads what is stored. Rejects when the store does not answer. */
  read(teamId: string): Promise<Installation | undefined>;
  /** Rejects when it could not be stored. */
  keep(installation: Installation): Promise<void>;
  /**
   * Stores what took the place of something that is worth nothing any more, so it is not let go until it is stored:
   * reading it tries again. Never rejects.
   */
  keepAnyhow(installation: Installation): Promise<Installation>;
  /** Takes it as if it had just been read. */
  remember(installation: Installation): Installation;
  forget(teamId: string): Promise<void>;
}

export interface ShelfOptions {
  /** A namespace of its own. Values never expire. */
  store: Pick<Keyv, "get" | "set" | "delete">;
  encryptionKey: Uint8Array;
  log: Logger;
  /** Unix milliseconds. */
  now(): number;
}

export function createShelf({ store, encryptionKey, log, now }: ShelfOptions): Shelf {
  const seal = createSeal(encryptionKey);
  const cache = new Map<string, { installation: Installation; until: number }>();
  const unsaved = new Map<string, Installation>();

  function remember(installation: Installation): Installation {
    cache.delete(installation.teamId);
    cache.set(installation.teamId, { installation, until: now() + CACHE_MS });
    const [oldest] = cache.keys();
    if (cache.size > MAX_CACHED && oldest !== undefined) cache.delete(oldest);
    return installation;
  }

  /** Undefined for what nobody can read any more: the workspace has to install the bot again. */
  function unseal(teamId: string, sealed: string): Installation | undefined {
    try {
      const { version: _, ...installation } = schema.parse(JSON.parse(seal.open(teamId, sealed)));
      return installation;
    } catch {
      const words = "cannot be read: ENCRYPTION_KEY is not the one it was stored with. Set that one, or install again";
      log.error({ team: teamId }, `The installation of a Slack workspace ${words}.`);
      return undefined;
    }
  }

  async function keep(installation: Installation): Promise<void> {
    const { teamId } = installation;
    await store.set(teamId, seal.close(teamId, JSON.stringify({ version: 1, ...installation })));
    unsaved.delete(teamId);
    remember(installation);
  }

  async function keepAnyhow(installation: Installation): Promise<Installation> {
    const { teamId } = installation;
    unsaved.set(teamId, installation);
    try {
      await keep(installation);
    } catch (error) {
      log.error({ err: error, team: teamId }, "The renewed token of a Slack workspace could not be stored yet.");
    }
    return remember(installation);
  }

  return {
    peek(teamId) {
      const cached = cache.get(teamId);
      return cached !== undefined && cached.until > now() ? cached.installation : undefined;
    },
    async read(teamId) {
      const renewed = unsaved.get(teamId);
      if (renewed !== undefined) return keepAnyhow(renewed);
      const sealed: unknown = await store.get(teamId);
      const installation = typeof sealed === "string" ? unseal(teamId, sealed) : undefined;
      return installation && remember(installation);
    },
    keep,
    keepAnyhow,
    remember,
    async forget(teamId) {
      await store.delete(teamId);
      unsaved.delete(teamId);
      cache.delete(teamId);
    },
  };
}
