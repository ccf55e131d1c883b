import { setTimeout as sleep } from "node:timers/promises";
import type { Keyv } from "keyv";
import type { Logger } from "pino";
import { z } from "zod";
import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import { untilAborted } from "../../../src/concurrency/deadlines.ts";
import { createSeal } from "../../../src/port/seal.ts";
import { codeOf } from "../api/error.ts";
import type { Workspaces } from "../api/workspaces.ts";
import type { Grants } from "./grants.ts";

/** Slack's tokens that expire live for twelve hours, and the next one may be had at any time. */
const RENEW_BEFORE_MS = 2 * 3_600_000;
/** Pauses while another process may be storing the token that it got for the same refresh token. */
const REREAD_PAUSES_MS = [200, 500, 1_000];

/** An installation is read again after this, because other processes change installations too. */
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

/** The workspaces that installed the bot. Their tokens are sealed wherever they are kept, and renewed before they expire. */
export interface Installations extends Workspaces {
  /** Replaces the workspace's installation. Rejects when it could not be stored. */
  keep(installation: Installation): Promise<void>;
  /** Forgets a workspace, unless it installed the bot again after `atMs`. Resolves to whether it is gone. */
  remove(teamId: string, atMs: number): Promise<boolean>;
}

export interface InstallationsOptions extends InstallationStoreOptions {
  grants: Pick<Grants, "refresh">;
}

export function createInstallations(options: InstallationsOptions): Installations {
  const { grants, log, now } = options;
  const records = createInstallationStore(options);
  const finding = new Map<string, Promise<Installation | undefined>>();

  async function renew(installation: Installation, refreshToken: string): Promise<Installation | undefined> {
    const { teamId, expiresAt = Infinity } = installation;
    try {
      const { token, refreshToken: next = refreshToken, expiresInS } = await grants.refresh(refreshToken);
      const { expiresAt: _, ...rest } = installation;
      const expiry = expiresInS === undefined ? {} : { expiresAt: now() + expiresInS * 1_000 };
      return await records.keepAnyhow({ ...rest, token, refreshToken: next, ...expiry });
    } catch (error) {
      const isSpent = codeOf(error) === "invalid_refresh_token";
      const byAnother = isSpent ? await reread(installation) : undefined;
      if (byAnother !== undefined) return byAnother;
      log.error({ err: error, team: teamId }, "The token of a Slack workspace could not be renewed.");
      if (expiresAt > now()) return records.remember(installation);
      if (isSpent) return undefined;
      throw error;
    }
  }

  async function reread({ teamId, token }: Installation): Promise<Installation | undefined> {
    for (const pauseMs of REREAD_PAUSES_MS) {
      const found = await records.read(teamId);
      if (found === undefined || found.token !== token) return found;
      await sleep(pauseMs);
    }
    return undefined;
  }

  async function find(teamId: string): Promise<Installation | undefined> {
    const known = records.peek(teamId);
    const installation = known ?? (await records.read(teamId));
    if (installation === undefined) return undefined;
    const { refreshToken, expiresAt = Infinity } = installation;
    // While a renewal fails, the known token is used until it expires, and renewed at the next reading.
    const isDue = expiresAt - now() < RENEW_BEFORE_MS && (known === undefined || expiresAt <= now());
    return refreshToken !== undefined && isDue ? renew(installation, refreshToken) : installation;
  }

  /** One at a time per workspace: a refresh token is taken once. */
  function findOnce(teamId: string): Promise<Installation | undefined> {
    const found = finding.get(teamId) ?? find(teamId).finally(() => finding.delete(teamId));
    finding.set(teamId, found);
    return found;
  }

  return {
    keep: records.keep,
    async find(teamId, signal) {
      const found = await untilAborted(findOnce(teamId), signal);
      if (found === undefined) return undefined;
      const { enterpriseId, botUserId, botId, token } = found;
      return { teamId, enterpriseId, botUserId, botId, token };
    },
    async remove(teamId, atMs) {
      // A renewal under way would store it again after it was deleted.
      await finding.get(teamId)?.catch(() => {});
      const installation = await records.read(teamId);
      if (installation !== undefined && installation.installedAt > atMs) return false;
      await records.forget(teamId);
      return true;
    },
  };
}

/** The bot in one workspace that installed it. */
export type Installation = Omit<z.infer<typeof schema>, "version">;

/** Installations as they are stored, sealed, and as they were read a moment ago. */
export interface InstallationStore {
  /** The installation as it was read a moment ago; undefined when that is longer ago. */
  peek(teamId: string): Installation | undefined;
  /** Reads the stored installation. Rejects when the store does not answer. */
  read(teamId: string): Promise<Installation | undefined>;
  /** Rejects when it could not be stored. */
  keep(installation: Installation): Promise<void>;
  /**
   * Stores a renewed installation. Its former token is void, so it is kept here until it is stored: every reading tries
   * again. Never rejects.
   */
  keepAnyhow(installation: Installation): Promise<Installation>;
  /** Takes it as if it had just been read. */
  remember(installation: Installation): Installation;
  forget(teamId: string): Promise<void>;
}

export interface InstallationStoreOptions {
  /** A namespace of its own. Values never expire. */
  store: Pick<Keyv, "get" | "set" | "delete">;
  encryptionKey: Uint8Array;
  log: Logger;
  /** Unix milliseconds. */
  now(): number;
}

export function createInstallationStore({
  store,
  encryptionKey,
  log,
  now,
}: InstallationStoreOptions): InstallationStore {
  const seal = createSeal(encryptionKey);
  const cache = new BoundedMap<string, { installation: Installation; until: number }>(MAX_CACHED);
  const unsaved = new Map<string, Installation>();

  function remember(installation: Installation): Installation {
    cache.set(installation.teamId, { installation, until: now() + CACHE_MS });
    return installation;
  }

  /** Undefined where the key has changed: the workspace has to install the bot again. */
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
