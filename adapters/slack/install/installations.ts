import { setTimeout as sleep } from "node:timers/promises";
import type { Keyv } from "keyv";
import type { Logger } from "pino";
import { z } from "zod";
import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import { untilAborted } from "../../../src/concurrency/deadlines.ts";
import { createKeyedQueue } from "../../../src/concurrency/keyed-queue.ts";
import { createSeal } from "../../../src/port/seal.ts";
import { ApiError, codeOf } from "../api/error.ts";
import { callMethod } from "../api/web-api.ts";
import type { Workspaces } from "../api/workspaces.ts";

/** Slack's expiring tokens are valid for twelve hours. The bot refreshes them this long before they expire. */
const RENEW_BEFORE_MS = 2 * 3_600_000;
/** Pauses between reads: another process may be storing the token that it got for the same refresh token. */
const REREAD_PAUSES_MS = [200, 500, 1_000];

/** How long to cache an installation. Short, because other processes can change installations too. */
const CACHE_MS = 60_000;
const MAX_CACHED = 1_000;

const CALL_MS = 10_000;

const schema = z.object({
  version: z.literal(1),
  /** The workspace, or the organisation if it installed the bot as a whole. */
  teamId: z.string(),
  isOrgWide: z.boolean(),
  enterpriseId: z.string().optional(),
  botUserId: z.string(),
  botId: z.string(),
  token: z.string(),
  refreshToken: z.string().optional(),
  /** Unix milliseconds. */
  expiresAt: z.number().optional(),
  installedAt: z.number(),
});

/** The workspaces that installed the bot. Their tokens are stored encrypted, and refreshed before they expire. */
export interface Installations extends Workspaces {
  /** Replaces an installation. Rejects if it could not be stored. */
  keep(installation: Installation): Promise<void>;
  /** Forgets an installation, unless it was made after `atMs`. Resolves to the removed workspaces. */
  remove(id: string, atMs: number): Promise<readonly string[]>;
  /** True if the workspace did not install the bot itself. */
  hasNoOwn(teamId: string): Promise<boolean>;
  unlink(teamId: string): Promise<void>;
}

export interface Renewal {
  token: string;
  refreshToken?: string | undefined;
  /** Absent for a token that does not expire. */
  expiresInS?: number | undefined;
}

/** Rejects with an `ApiError`. */
export type Refresh = (refreshToken: string) => Promise<Renewal>;

const renewed = z.object({
  access_token: z.string().min(1),
  refresh_token: z.string().optional(),
  expires_in: z.number().optional(),
});

export function createRefresh(apiUrl: string, clientId: string, clientSecret: string): Refresh {
  const method = "oauth.v2.access";
  return async (refreshToken) => {
    const client = { client_id: clientId, client_secret: clientSecret };
    const form = { ...client, grant_type: "refresh_token", refresh_token: refreshToken };
    const { data } = renewed.safeParse(await callMethod({ apiUrl }, method, form, AbortSignal.timeout(CALL_MS)));
    if (data === undefined) {
      throw new ApiError(method, `Slack answered ${method} with something unexpected.`, { code: "", status: 200 });
    }
    return { token: data.access_token, refreshToken: data.refresh_token, expiresInS: data.expires_in };
  };
}

export interface InstallationsOptions extends InstallationStoreOptions {
  refresh: Refresh;
}

export function createInstallations(options: InstallationsOptions): Installations {
  const { refresh, log, now } = options;
  const records = createInstallationStore(options);
  const links = createLinks(options.store);
  const finding = new Map<string, Promise<Installation | undefined>>();

  async function renew(installation: Installation, refreshToken: string): Promise<Installation | undefined> {
    const { teamId, expiresAt = Infinity } = installation;
    try {
      const { token, refreshToken: next = refreshToken, expiresInS } = await refresh(refreshToken);
      const { expiresAt: _, ...rest } = installation;
      const expiry = expiresInS === undefined ? {} : { expiresAt: now() + expiresInS * 1_000 };
      return await records.keepUntilStored({ ...rest, token, refreshToken: next, ...expiry });
    } catch (error) {
      const isSpent = codeOf(error) === "invalid_refresh_token";
      const byAnother = isSpent ? await reread(installation) : undefined;
      if (byAnother !== undefined) return byAnother;
      log.error({ err: error, team: teamId }, "Could not refresh the token of a Slack workspace.");
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
    // If a refresh fails, uses the known token until it expires, and refreshes at the next read.
    const isDue = expiresAt - now() < RENEW_BEFORE_MS && (known === undefined || expiresAt <= now());
    return refreshToken !== undefined && isDue ? renew(installation, refreshToken) : installation;
  }

  /** Refreshes one token of a workspace at a time, because a refresh token works only once. */
  function findOnce(teamId: string): Promise<Installation | undefined> {
    const found = finding.get(teamId) ?? find(teamId).finally(() => finding.delete(teamId));
    finding.set(teamId, found);
    return found;
  }

  async function findFor(teamId: string, enterpriseId: string | undefined): Promise<Installation | undefined> {
    const own = await findOnce(teamId);
    if (own !== undefined) return own;
    const id = enterpriseId ?? (await links.find(teamId));
    const found = id === undefined ? undefined : await findOnce(id);
    if (id === undefined || found?.isOrgWide !== true) return undefined;
    // Stores the link, because a reply's address contains only the workspace.
    await links.add(teamId, id);
    return found;
  }

  return {
    keep: records.keep,
    async find(teamId, signal, enterpriseId) {
      const found = await untilAborted(findFor(teamId, enterpriseId), signal);
      if (found === undefined) return undefined;
      const { botUserId, botId, token } = found;
      return { teamId, enterpriseId: found.enterpriseId, botUserId, botId, token };
    },
    async remove(id, atMs) {
      // Waits for a running refresh, because it would store the installation again after its deletion.
      await finding.get(id)?.catch(() => {});
      const installation = await records.read(id);
      if (installation !== undefined && installation.installedAt > atMs) return [];
      await records.forget(id);
      return [id, ...(await links.teamsOf(id))];
    },
    hasNoOwn: async (teamId) => (await records.read(teamId)) === undefined,
    unlink: links.remove,
  };
}

interface Links {
  find(teamId: string): Promise<string | undefined>;
  add(teamId: string, enterpriseId: string): Promise<void>;
  remove(teamId: string): Promise<void>;
  teamsOf(enterpriseId: string): Promise<readonly string[]>;
}

const teamIds = z.array(z.string()).catch([]);

function createLinks(store: InstallationStoreOptions["store"]): Links {
  const known = new BoundedMap<string, string>(MAX_CACHED);
  const queue = createKeyedQueue();
  const teamsOf = async (enterpriseId: string) => teamIds.parse(await store.get(`teams:${enterpriseId}`));

  async function find(teamId: string): Promise<string | undefined> {
    const found = known.get(teamId) ?? z.string().safeParse(await store.get(`organisation:${teamId}`)).data;
    if (found !== undefined) known.set(teamId, found);
    return found;
  }

  return {
    find,
    teamsOf,
    async add(teamId, enterpriseId) {
      if ((await find(teamId)) === enterpriseId) return;
      await queue.run(enterpriseId, async () => {
        await store.set(`teams:${enterpriseId}`, [...new Set([...(await teamsOf(enterpriseId)), teamId])]);
        await store.set(`organisation:${teamId}`, enterpriseId);
      });
      known.set(teamId, enterpriseId);
    },
    async remove(teamId) {
      const enterpriseId = await find(teamId);
      if (enterpriseId === undefined) return;
      known.delete(teamId);
      await queue.run(enterpriseId, async () => {
        const left = (await teamsOf(enterpriseId)).filter((id) => id !== teamId);
        await store.set(`teams:${enterpriseId}`, left);
        await store.delete(`organisation:${teamId}`);
      });
    },
  };
}

export type Installation = Omit<z.infer<typeof schema>, "version">;

interface InstallationStore {
  /** Undefined if the cache has no entry, or if the entry has expired. */
  peek(teamId: string): Installation | undefined;
  /** Rejects if the store does not respond. */
  read(teamId: string): Promise<Installation | undefined>;
  /** Rejects if the installation could not be stored. */
  keep(installation: Installation): Promise<void>;
  /**
   * Stores an installation with a new token. The old token is no longer valid, so the new one stays in memory, and
   * every read tries to store it again. Never rejects.
   */
  keepUntilStored(installation: Installation): Promise<Installation>;
  remember(installation: Installation): Installation;
  forget(teamId: string): Promise<void>;
}

interface InstallationStoreOptions {
  /** A separate namespace whose values never expire. */
  store: Pick<Keyv, "get" | "set" | "delete">;
  encryptionKey: Uint8Array;
  log: Logger;
  /** Unix milliseconds. */
  now(): number;
}

function createInstallationStore({ store, encryptionKey, log, now }: InstallationStoreOptions): InstallationStore {
  const seal = createSeal(encryptionKey);
  const cache = new BoundedMap<string, { installation: Installation; until: number }>(MAX_CACHED);
  const unsaved = new Map<string, Installation>();

  function remember(installation: Installation): Installation {
    cache.set(installation.teamId, { installation, until: now() + CACHE_MS });
    return installation;
  }

  /** Undefined if the key has changed. The workspace must then install the bot again. */
  function unseal(teamId: string, sealed: string): Installation | undefined {
    try {
      const { version: _, ...installation } = schema.parse(JSON.parse(seal.open(teamId, sealed)));
      return installation;
    } catch {
      const words =
        "cannot be decrypted: it was stored with another ENCRYPTION_KEY. Restore that key, or install the app again";
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

  async function keepUntilStored(installation: Installation): Promise<Installation> {
    const { teamId } = installation;
    unsaved.set(teamId, installation);
    try {
      await keep(installation);
    } catch (error) {
      log.error({ err: error, team: teamId }, "Could not store the new token of a Slack workspace yet.");
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
      if (renewed !== undefined) return keepUntilStored(renewed);
      const sealed: unknown = await store.get(teamId);
      const installation = typeof sealed === "string" ? unseal(teamId, sealed) : undefined;
      return installation && remember(installation);
    },
    keep,
    keepUntilStored,
    remember,
    async forget(teamId) {
      await store.delete(teamId);
      unsaved.delete(teamId);
      cache.delete(teamId);
    },
  };
}
