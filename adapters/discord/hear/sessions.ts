import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "discord.js";
import { waitAtMost } from "../../../src/concurrency/deadlines.ts";
import { createKeyedQueue } from "../../../src/concurrency/keyed-queue.ts";
import type { Share, SharedParts } from "../../../src/concurrency/shares.ts";
import { describeError } from "../../../src/port/errors.ts";
import type { DiscordAdapterOptions } from "../options.ts";
import type { Shard } from "./client.ts";
import { type Connection, createConnection, reach } from "./connection.ts";
import { createGatewayInfo } from "./gateway-info.ts";
import { createIdentify } from "./identify.ts";

const LOOK_MS = 700;
/** While others are waited for. */
const SOON_MS = 200;
/** Longest that a process that ends asks who takes over: a lost connection to Redis is made anew within that time. */
const UNKNOWN_MS = 3_000;
/** Longest that giving the shards back may take beyond that; their lease ends by itself. */
const LEAVE_MS = 1_000;

export interface SessionsOptions
  extends Pick<DiscordAdapterOptions, "token" | "apiUrl" | "shards" | "shares" | "onFatal" | "log"> {
  /** Gives the client of a shard its listeners, before it connects. `isInherited` resolves after it has. */
  attach(client: Client, shard: Shard, isInherited: Promise<boolean>): void;
  /** The shard is no longer heard here. */
  detach(shard: number): void;
}

/** The sessions of this process: one for each shard of its share, which changes as other processes come and go. */
export interface Sessions extends Pick<Connection, "isReady"> {
  /** Resolves when its share is connected, and nothing is left for others. Rejects in plain words when that is hopeless. */
  open(): Promise<void>;
  /**
   * Gives its share to others, who connect before it is no longer heard here. Resolves when they have, when there are
   * none, or after `longestMs`.
   */
  handOver(longestMs: number): Promise<void>;
  close(): Promise<void>;
}

interface Session {
  connection: Connection;
  isOpen: boolean;
  /** See `Share.inherited`; known with the first claim after it is open. */
  isInherited: PromiseWithResolvers<boolean>;
}

export function createSessions(options: SessionsOptions): Sessions {
  const { shards, log, attach, detach, onFatal } = options;
  const shares = options.shares ?? createOwnShares();
  const { claim } = shards === undefined ? shares : createOwnShares(shards.ids);
  const gateway = createGatewayInfo(options);
  const identify = createIdentify({ gateway, takeTurn: shares.takeTurn, log });
  const common = { ...options, gateway, identify, content: { isAsked: true } };
  const sessions = new Map<number, Session>();
  const closing = new AbortController();
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
    const attachTo = (client: Client) => attach(client, shard, isInherited.promise);
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
    log.debug({ shard: id }, "another process hears a shard");
    sessions.delete(id);
    isInherited.resolve(false);
    await connection.close();
    if (!sessions.has(id)) detach(id);
  }

  async function look(): Promise<Share> {
    if (plan === undefined) throw new Error("How many shards there are is not known yet.");
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
    lookInTurn().catch((err: unknown) => log.debug({ err }, "which shards are whose is not known"));
  }

  /** Lets others take over until then, and gives the shards back. */
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
      // One look at a Redis that does not answer takes seconds; whoever ends has more to do.
      await waitAtMost(leave(plan.count, performance.now() + longestMs), longestMs + LEAVE_MS);
    },
    async close() {
      closing.abort(new Error("The connection to Discord was closed."));
      clearInterval(looking);
      await Promise.all(sessions.values().map(({ connection }) => connection.close({ isResumable: true })));
    },
  };
}

/** The shards of a process that shares with none: these, or all there are. */
export function createOwnShares(ids?: readonly number[]): SharedParts {
  const turns = new Map<string, number>();
  return {
    claim: async ({ count, inUse }) => ({
      own: ids ?? [...Array(count).keys()],
      inherited: inUse,
      isOpen: false,
      isAlone: true,
    }),
    leave: async () => {},
    async takeTurn(name, everyMs) {
      if ((turns.get(name) ?? 0) > performance.now()) return false;
      turns.set(name, performance.now() + everyMs);
      return true;
    },
  };
}
