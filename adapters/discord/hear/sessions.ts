import { setTimeout as sleep } from "node:timers/promises";
import { waitAtMost } from "../../../src/concurrency/deadlines.ts";
import { createKeyedQueue } from "../../../src/concurrency/keyed-queue.ts";
import { describeError } from "../../../src/port/errors.ts";
import type { Share, SharedParts } from "../../../src/port/shares.ts";
import type { Api } from "../api/client.ts";
import type { DiscordAdapterOptions } from "../options.ts";
import { createGatewayInfo, createIdentify } from "./identify.ts";
import { type Connection, createConnection, type GatewayClient, reach, type Shard } from "./transport.ts";

const LOOK_MS = 700;
const SOON_MS = 200;
/** A shutdown stops waiting if the shares are unknown for this long. A lost connection to Redis recovers sooner. */
const UNKNOWN_MS = 3_000;
/** Extra time on shutdown for releasing the shards. Without a release, their leases expire. */
const LEAVE_MS = 1_000;

export interface SessionsOptions
  extends Pick<DiscordAdapterOptions, "token" | "shards" | "shares" | "takeTurn" | "onFatal" | "log"> {
  api: Api;
  /** Attaches a client's listeners, before the client connects. `isInherited` resolves after that. */
  attach(client: GatewayClient, shard: Shard, isInherited: Promise<boolean>): void;
  detach(shard: number): void;
}

/** The share changes when other processes start or stop. */
export interface Sessions extends Pick<Connection, "isReady"> {
  /** Resolves when its shards are connected and each other shard has a process. Rejects with an explanation. */
  open(): Promise<void>;
  /**
   * Gives the shards to other processes, which connect before this one disconnects. Resolves when they have connected,
   * at once if there are none, or after `longestMs`.
   */
  handOver(longestMs: number): Promise<void>;
  close(): Promise<void>;
}

interface Session {
  connection: Connection;
  isOpen: boolean;
  /** See `Share.inherited`. Resolves after the first claim of the open session. */
  isInherited: PromiseWithResolvers<boolean>;
}

export function createSessions(options: SessionsOptions): Sessions {
  const { shards, log, attach, detach, onFatal } = options;
  const shares = options.shares ?? createOwnShares(undefined, options.takeTurn);
  const { claim } = shards === undefined ? shares : createOwnShares(shards.ids);
  const closing = new AbortController();
  const gateway = createGatewayInfo(options.api, closing.signal);
  const identify = createIdentify({ gateway, takeTurn: shares.takeTurn, log });
  const common = { ...options, gateway, identify, content: { isAsked: true } };
  const sessions = new Map<number, Session>();
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => {});
  const { run } = createKeyedQueue();
  let plan: { count: number; atOnce: number } | undefined;
  let looking: NodeJS.Timeout | undefined;
  let opened = Promise.withResolvers<void>();
  let isLeaving = false;
  let hasLeft = false;

  async function begin(shard: Shard): Promise<void> {
    const { id } = shard;
    const isInherited = Promise.withResolvers<boolean>();
    const attachTo = (client: GatewayClient) => attach(client, shard, isInherited.promise);
    const connection = createConnection({ ...common, shard, attach: attachTo });
    const session: Session = { connection, isOpen: false, isInherited };
    sessions.set(id, session);
    log.debug({ shard }, "connecting a shard");
    try {
      await connection.open();
      session.isOpen = true;
      opened.resolve();
      lookLater();
    } catch (error) {
      if (sessions.get(id) !== session || closing.signal.aborted) return;
      failed.reject(error);
      if (looking !== undefined) onFatal(describeError(error));
    }
  }

  async function end(id: number, { connection, isInherited }: Session): Promise<void> {
    log.debug({ shard: id }, "another process took over a shard");
    sessions.delete(id);
    isInherited.resolve(false);
    await connection.close();
    if (!sessions.has(id)) detach(id);
  }

  async function look(): Promise<Share> {
    if (plan === undefined) throw new Error("The number of shards is not known yet.");
    const { count } = plan;
    const inUse = [...sessions].flatMap(([id, { isOpen }]) => (isOpen ? [id] : []));
    const share = await claim({ ...plan, inUse, isLeaving });
    if (closing.signal.aborted) return share;
    for (const id of inUse) sessions.get(id)?.isInherited.resolve(share.inherited.includes(id));
    for (const [id, session] of sessions) if (!share.own.includes(id)) void end(id, session);
    for (const id of share.own) if (!sessions.has(id)) void begin({ id, count });
    return share;
  }

  const lookInTurn = () => run("", look);
  function lookLater(): void {
    if (hasLeft) return;
    lookInTurn().catch((err: unknown) => log.debug({ err }, "could not find out which process owns which shard"));
  }

  async function leave(count: number, until: number): Promise<void> {
    isLeaving = true;
    let knownAt = performance.now();
    while (sessions.size > 0 && performance.now() < until) {
      const share = await lookInTurn().catch(() => undefined);
      if (share !== undefined) knownAt = performance.now();
      if (share?.isAlone === true || performance.now() - knownAt > UNKNOWN_MS) break;
      await sleep(SOON_MS);
    }
    hasLeft = true;
    clearInterval(looking);
    await run("", () => shares.leave(count));
  }

  return {
    async open() {
      const { shards: recommended, session_start_limit: limit } = await reach(gateway.read, log, closing.signal);
      plan = { count: shards?.count ?? recommended, atOnce: limit.max_concurrency };
      for (;;) {
        const { isOpen } = await lookInTurn();
        if (!isOpen && sessions.values().every((session) => session.isOpen)) break;
        const soon = sleep(SOON_MS, undefined, { signal: closing.signal });
        await Promise.race([opened.promise, soon, failed.promise]);
        opened = Promise.withResolvers();
      }
      looking = setInterval(lookLater, LOOK_MS);
    },
    isReady: () =>
      looking !== undefined && sessions.values().every(({ isOpen, connection }) => !isOpen || connection.isReady()),
    async handOver(longestMs) {
      if (plan === undefined) return;
      // Limits the time, because one check can take seconds without Redis, and the shutdown has more to do.
      await waitAtMost(leave(plan.count, performance.now() + longestMs), longestMs + LEAVE_MS);
    },
    async close() {
      closing.abort(new Error("The connection to Discord was closed."));
      clearInterval(looking);
      await Promise.all(sessions.values().map(({ connection }) => connection.close({ isResumable: true })));
    },
  };
}

/** The shares of a process that runs alone: the given shards, or all. */
export function createOwnShares(ids?: readonly number[], takeTurn = createTurns()): SharedParts {
  return {
    claim: async ({ count, inUse }) => ({
      own: ids ?? [...Array(count).keys()],
      inherited: inUse,
      isOpen: false,
      isAlone: true,
    }),
    leave: async () => {},
    takeTurn,
  };
}

function createTurns(): SharedParts["takeTurn"] {
  const turns = new Map<string, number>();
  return async (name, everyMs) => {
    if ((turns.get(name) ?? 0) > performance.now()) return false;
    turns.set(name, performance.now() + everyMs);
    return true;
  };
}
