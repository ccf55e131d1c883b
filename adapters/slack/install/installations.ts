import { setTimeout as sleep } from "node:timers/promises";
import { codeOf } from "../api/error.ts";
import type { Workspaces } from "../api/workspaces.ts";
import type { Grants } from "./grants.ts";
import { createShelf, type Installation, type ShelfOptions } from "./stored.ts";

/** Slack's tokens that expire live for twelve hours, and the next one may be had at any time. */
const RENEW_BEFORE_MS = 2 * 3_600_000;
/** Another process may be about to store what it was given for the same refresh token. */
const REREAD_PAUSES_MS = [200, 500, 1_000];

/** The workspaces that installed the bot. Their tokens are sealed wherever they are kept, and renewed before they expire. */
export interface Installations extends Workspaces {
  /** Takes the place of what is there. Rejects when it could not be stored. */
  keep(installation: Installation): Promise<void>;
  /** Forgets a workspace, unless it installed the bot again after `atMs`. Resolves to whether it is gone. */
  remove(teamId: string, atMs: number): Promise<boolean>;
}

export interface InstallationsOptions extends ShelfOptions {
  grants: Pick<Grants, "refresh">;
}

export function createInstallations(options: InstallationsOptions): Installations {
  const { grants, log, now } = options;
  const shelf = createShelf(options);
  const finding = new Map<string, Promise<Installation | undefined>>();

  async function renew(installation: Installation, refreshToken: string): Promise<Installation | undefined> {
    const { teamId, expiresAt = Infinity } = installation;
    try {
      const { token, refreshToken: next = refreshToken, expiresInS } = await grants.refresh(refreshToken);
      const { expiresAt: _, ...rest } = installation;
      const expiry = expiresInS === undefined ? {} : { expiresAt: now() + expiresInS * 1_000 };
      return await shelf.keepAnyhow({ ...rest, token, refreshToken: next, ...expiry });
    } catch (error) {
      const isSpent = codeOf(error) === "invalid_refresh_token";
      const byAnother = isSpent ? await reread(installation) : undefined;
      if (byAnother !== undefined) return byAnother;
      log.error({ err: error, team: teamId }, "The token of a Slack workspace could not be renewed.");
      if (expiresAt > now()) return shelf.remember(installation);
      if (isSpent) return undefined;
      throw error;
    }
  }

  async function reread({ teamId, token }: Installation): Promise<Installation | undefined> {
    for (const pauseMs of REREAD_PAUSES_MS) {
      const found = await shelf.read(teamId);
      if (found === undefined || found.token !== token) return found;
      await sleep(pauseMs);
    }
    return undefined;
  }

  async function find(teamId: string): Promise<Installation | undefined> {
    const known = shelf.peek(teamId);
    const installation = known ?? (await shelf.read(teamId));
    if (installation === undefined) return undefined;
    const { refreshToken, expiresAt = Infinity } = installation;
    // While a renewal fails, what is known is used as long as it is good, and tried again when it is read anew.
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
    keep: shelf.keep,
    async find(teamId, signal) {
      const found = await untilAborted(findOnce(teamId), signal);
      if (found === undefined) return undefined;
      const { enterpriseId, botUserId, botId, token } = found;
      return { teamId, enterpriseId, botUserId, botId, token };
    },
    async remove(teamId, atMs) {
      // What is being renewed would be stored again after it was deleted.
      await finding.get(teamId)?.catch(() => {});
      const installation = await shelf.read(teamId);
      if (installation !== undefined && installation.installedAt > atMs) return false;
      await shelf.forget(teamId);
      return true;
    },
  };
}

async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
