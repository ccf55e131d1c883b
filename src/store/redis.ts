import type { Logger } from "pino";
import { z } from "zod";
import type { Right } from "../port/right.ts";
import type { Clock } from "./clock.ts";
import { evalFenced } from "./fenced-script.ts";
import { StoreError } from "./outage.ts";
import { connectToRedis, loadRedis, probe, type RedisConnection } from "./redis-connection.ts";
import type { Indexes, OwnedStore, TextEntry } from "./sqlite.ts";
import { parseStored } from "./values.ts";
import { describeRefusal, STORED_VERSION } from "./version.ts";

/** How many keys one step reads when it scans the whole server. */
const SCAN_COUNT = 1_000;
const CLOCK_KEPT_MS = 60_000;
/** How many entries one step of an export or an erasure handles. Redis serves no one else during a step. */
const READ_ENTRIES = 100;
const ERASED_ENTRIES = 500;
/** An index lives longer than its entries by this share of their life, so that most writes need not extend it. */
const INDEX_SPARE = 0.1;
/** Each index is a sorted set of keys, sorted by the time at which the key expires. */
const INDEX_ROOT = "palaver:of:";
const VERSION_KEY = "palaver:layout";
/** Every Palaver writes this key at its first start. The key never expires. */
const IDENTITY_KEY = "palaver:identity:pseudonym-key";
/** The limit for the names of an entry's indexes, in characters. */
const OWNERS_CHARS = 4_096;

export interface OpenStore {
  storeUnder: (right: Right) => OwnedStore;
  /** The clock by which entries expire. */
  now: Clock;
  /** The connection that processes share. */
  shared?: RedisConnection;
  /** Tries a write. Resolves to true if the store accepted it, else to false. Never rejects. */
  isReachable: () => Promise<boolean>;
  close: () => Promise<void>;
}

/**
 * A store for Keyv on Redis or Valkey. During an outage every operation rejects within two seconds, so that no caller
 * mistakes an outage for an empty store. Does not change keys: the caller adds `{namespace}:`.
 */
export function createRedisStore(url: string, log: Logger): OpenStore {
  const { connection, now } = withFirstLook(connectToRedis(url, log), url);
  return {
    storeUnder: createBoundStores(connection, now),
    now,
    shared: connection,
    isReachable: () =>
      connection
        .run(() => probe(connection.client))
        .then(
          () => true,
          () => false,
        ),
    close: connection.close,
  };
}

/**
 * Checks the server before the first operation, and refuses a server that Palaver cannot use. Entries expire by the
 * server's clock: reads that clock at the start and from time to time, and counts evenly in between.
 */
function withFirstLook(connection: RedisConnection, url: string) {
  const { client, run } = connection;
  let known: { serverMs: number; steadyMs: number } | undefined;

  async function look(): Promise<void> {
    if (known === undefined) {
      if (await isCluster(client)) throw new StoreError(CLUSTER_REFUSAL);
      const { version, refusal } = await checkVersion(client, url);
      if (refusal !== undefined) throw new StoreError(refusal);
      if (version !== STORED_VERSION) await client.set(VERSION_KEY, STORED_VERSION);
    }
    // Ignore a failure: some servers do not let this user read the time. The operation reports any other problem.
    const answer = await client.sendCommand(["TIME"]).catch(() => undefined);
    const [seconds, microseconds] = Array.isArray(answer) ? answer.map(Number) : [];
    const serverMs = seconds === undefined ? now() : seconds * 1_000 + (microseconds ?? 0) / 1_000;
    known = { serverMs, steadyMs: performance.now() };
  }

  function now(): number {
    return known === undefined ? Date.now() : Math.floor(known.serverMs + performance.now() - known.steadyMs);
  }

  const timed: RedisConnection = {
    ...connection,
    run: (operation, on) =>
      run(async () => {
        if (known === undefined || performance.now() - known.steadyMs > CLOCK_KEPT_MS) await look();
        return operation();
      }, on),
  };
  return { now, connection: timed };
}

/** One step changes several keys, and a cluster allows this only for keys in the same slot. */
export const CLUSTER_REFUSAL =
  "REDIS_URL names a node of a Redis Cluster, which Palaver cannot use: it changes several keys in one step, and a cluster spreads keys over nodes. Use a single primary; replicas are fine.";

/** Resolves to false if the server does not report whether it is a cluster. */
export async function isCluster(client: RedisConnection["client"]): Promise<boolean> {
  const info = await client.info("cluster").catch(() => "");
  return info.includes("cluster_enabled:1");
}

/** Finds the version of any data at this address, and the reason if Palaver cannot use that data. */
export async function checkVersion(
  client: RedisConnection["client"],
  url: string,
): Promise<{ version?: number; refusal?: string | undefined }> {
  const [stamp = null, identity = null] = await client.mGet([VERSION_KEY, IDENTITY_KEY]);
  if (stamp === null && identity === null) return {};
  const version = Number(stamp);
  const { protocol, host, pathname } = new URL(url);
  const store = `The Redis database ${protocol}//${host}${pathname} (REDIS_URL)`;
  const startEmpty = "end REDIS_URL with the number of an empty database, such as /1";
  return { version, refusal: describeRefusal(version, store, startEmpty) };
}

function createBoundStores(connection: RedisConnection, now: Clock): (right: Right) => OwnedStore {
  const { client, run } = connection;
  const { default: KeyvRedis } = loadRedis();
  const adapter = new KeyvRedis<string>(client, {
    throwOnErrors: true,
    throwOnConnectError: true,
    useUnlink: true,
  });
  // The client's own listener logs errors. Without this one, an "error" event of the adapter would throw.
  adapter.on("error", () => {});
  const read = createReads(connection);

  /** Replaces the adapter's iterator, which scans ten keys per step: too slow on a server with many keys. */
  async function* iterator(namespace?: string): AsyncGenerator<[string, string], void> {
    const match = namespace === undefined ? "*" : `${escapeGlob(namespace)}:*`;
    let cursor = "0";
    do {
      const page = await run(() => client.scan(cursor, { MATCH: match, COUNT: SCAN_COUNT, TYPE: "string" }));
      cursor = page.cursor;
      const values = page.keys.length === 0 ? [] : await read(page.keys);
      for (const [index, key] of page.keys.entries()) {
        const value = values[index];
        // A listed key without a value has expired in the meantime.
        if (value !== undefined) yield [key, value];
      }
    } while (cursor !== "0");
  }

  const storeUnder = (owned: ReturnType<typeof createOwnedTexts>): OwnedStore => ({
    opts: { dialect: "redis", url: "redis://" },
    namespace: undefined,
    on: adapter.on.bind(adapter),
    iterator,
    get: async (key) => (await read([key]))[0],
    getMany: read,
    set: (key, value, ttl) => owned.write([{ key, value, ttl }], []),
    setMany: (entries) => owned.write(entries, []),
    delete: async (key) => (await owned.remove([key])) > 0,
    deleteMany: async (keys) => (await owned.remove(keys)) > 0,
    has: async (key) => (await read([key]))[0] !== undefined,
    hasMany: (keys) => run(() => adapter.hasMany(keys)),
    async clear() {
      for await (const [key] of iterator()) await run(() => adapter.delete(key));
    },
    async disconnect() {},
    ...owned,
  });
  return (right) => storeUnder(createOwnedTexts(connection, now, right));
}

/** Sends all reads that start at the same time as one MGET. Unlike GET, MGET skips a value that is not a string. */
function createReads({
  client,
  run,
}: RedisConnection): (keys: readonly string[]) => Promise<Array<string | undefined>> {
  let next: { keys: string[]; values: Promise<Array<string | null>> } | undefined;

  async function send(keys: string[]): Promise<Array<string | null>> {
    // Wait for the next tick. By then, all tasks that are ready have added their keys.
    await new Promise((resolve) => process.nextTick(resolve));
    next = undefined;
    return run(() => client.mGet(keys));
  }

  return async (keys) => {
    if (keys.length === 0) return [];
    if (next === undefined) {
      const all: string[] = [];
      next = { keys: all, values: send(all) };
    }
    const { keys: all, values } = next;
    const from = all.length;
    all.push(...keys);
    return (await values).slice(from, from + keys.length).map((value) => value ?? undefined);
  };
}

/** Reads the names of an entry's indexes; false for a list. */
const NAMES = `
local function namesOf(key)
  local head = redis.pcall('GETRANGE', key, 0, ${OWNERS_CHARS})
  if type(head) == 'table' then return false end
  local names = string.match(head, '^{"of":(%b[])')
  return names and cjson.decode(names) or {}
end`;

/**
 * Writes and removes entries together with the indexes that find them.
 *
 * The script's values start with the entries: each has its value, its TTL and a word ("rewrite" if the key must exist,
 * "list", or ""). The members of each index follow.
 *
 * An index outlives its members. When its expiry is extended, it drops the members whose entries have expired.
 */
const WRITE = `${NAMES}
local entries, removed = tonumber(ARGV[1]), tonumber(ARGV[2])
local now, at = ARGV[3], 4
for index = 1, entries do
  local ttl, way = ARGV[at + 3 * index - 2], ARGV[at + 3 * index - 1]
  -- If the first entry is rewritten, SET itself looks whether it is there.
  local isLooked = index == 1 and ttl == ''
  if way == 'rewrite' and not isLooked and redis.call('EXISTS', KEYS[index]) == 0 then return -1 end
end
for index = 1, entries do
  local value, ttl, way = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  if way == 'list' then
    if redis.call('RPUSH', KEYS[index], value) > 1 then redis.call('LTRIM', KEYS[index], -1, -1) end
    redis.call('PEXPIRE', KEYS[index], ttl)
  elseif ttl ~= '' then redis.call('SET', KEYS[index], value, 'PX', ttl)
  elseif way == 'rewrite' then
    if not redis.call('SET', KEYS[index], value, 'XX', 'KEEPTTL') then return -1 end
  else redis.call('SET', KEYS[index], value) end
  at = at + 3
end
local gone = 0
for index = entries + 1, entries + removed do
  for _, name in ipairs(namesOf(KEYS[index]) or {}) do redis.call('ZREM', '${INDEX_ROOT}' .. name, KEYS[index]) end
  gone = gone + redis.call('UNLINK', KEYS[index])
end
for index = entries + removed + 1, #KEYS do
  local ttl, spare, values = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])
  redis.call('ZADD', KEYS[index], unpack(ARGV, at + 3, at + 2 + values))
  local left = redis.call('PTTL', KEYS[index])
  if left < tonumber(ttl) then
    -- Nothing has expired in an index that is new.
    if left ~= -1 then redis.call('ZREMRANGEBYSCORE', KEYS[index], '-inf', now) end
    redis.call('PEXPIRE', KEYS[index], spare)
  end
  at = at + 3 + values
end
return gone`;

/** Erases keys whose entries name all the given indexes, and removes these keys from every index. */
const ERASE = `${NAMES}
local wanted = cjson.decode(ARGV[1])
local erased, changed = 0, 0
for index = 2, #KEYS do
  local names = namesOf(KEYS[index])
  if not names then
    local head = redis.call('LINDEX', KEYS[index], 0)
    names = cjson.decode(string.match(head, '^{"of":(%b[])'))
  end
  local of, isTheirs = {}, true
  for _, name in ipairs(names) do of[name] = true end
  for _, name in ipairs(wanted) do isTheirs = isTheirs and of[name] end
  if isTheirs then
    erased = erased + redis.call('UNLINK', KEYS[index])
    for name in pairs(of) do redis.call('ZREM', '${INDEX_ROOT}' .. name, KEYS[index]) end
    changed = changed + 1
  elseif not of[wanted[1]] then
    changed = changed + redis.call('ZREM', KEYS[1], KEYS[index])
  end
end
return {erased, changed}`;

/** The stored text of an entry starts with the names of its indexes. If an index disagrees, the entry is right. */
const owners = z.object({ of: z.array(z.string()).default([]) });

function createOwnedTexts({ client, run }: Pick<RedisConnection, "client" | "run">, now: Clock, right: Right) {
  /** Resolves to the number of `removed` keys that existed, or to -1 if a key that must exist was missing. */
  async function change(entries: readonly TextEntry[], removed: readonly string[]): Promise<number> {
    if (entries.length + removed.length === 0) return 0;
    return run(async () => {
      const indexes = toIndexes(entries, now());
      const keys = [...entries.map(({ key }) => key), ...removed, ...indexes.map(({ key }) => key)];
      const values = [
        ...[entries.length, removed.length, now()].map(String),
        ...entries.flatMap(({ value, ttl, of, isRewrite, isList }) => [
          withOwners(value, of),
          ttl === undefined ? "" : String(Math.ceil(ttl)),
          isList ? "list" : isRewrite ? "rewrite" : "",
        ]),
        ...indexes.flatMap(({ values }) => values),
      ];
      return Number(await evalFenced(client, WRITE, keys, values, right));
    });
  }

  async function keysOf(index: string, prefix: string): Promise<string[]> {
    const keys = await run(() => client.zRange(INDEX_ROOT + index, now(), "+inf", { BY: "SCORE" }));
    return keys.filter((key) => key.startsWith(prefix));
  }

  return {
    keysOf,
    remove: (keys: readonly string[]) => change([], keys),
    append: async (key: string, text: string) => (await run(() => client.rPushX(key, text))) > 0,
    readAppended: (key: string) => run(() => client.lRange(key, 1, -1)),
    async write(entries: readonly TextEntry[], removed: readonly string[]): Promise<boolean> {
      return (await change(entries, removed)) !== -1;
    },
    async *readOf(of: Indexes, prefix: string): AsyncGenerator<[string, string], void> {
      const keys = await keysOf(of[0], prefix);
      for (let from = 0; from < keys.length; from += READ_ENTRIES) {
        const page = keys.slice(from, from + READ_ENTRIES);
        const values = await run(() => client.mGet(page));
        for (const [index, key] of page.entries()) {
          const value = values[index];
          if (typeof value !== "string") continue;
          const belongsTo = parseStored(owners, value)?.of ?? [];
          if (of.every((name) => name === undefined || belongsTo.includes(name))) yield [key, value];
        }
      }
    },
    async eraseOf(of: Indexes, prefix: string): Promise<number> {
      const names = JSON.stringify(of.filter((name) => name !== undefined));
      let erased = 0;
      // Repeat until nothing is left, so that entries written during the erasure are erased too.
      for (let isChanged = true; isChanged; ) {
        isChanged = false;
        const keys = await keysOf(of[0], prefix);
        for (let from = 0; from < keys.length; from += ERASED_ENTRIES) {
          const page = [INDEX_ROOT + of[0], ...keys.slice(from, from + ERASED_ENTRIES)];
          const answer = erasedAnswer.parse(await run(() => evalFenced(client, ERASE, page, [names], right)));
          erased += answer[0];
          isChanged ||= answer[1] > 0;
        }
      }
      return erased;
    },
    async *indexes(prefix: string): AsyncGenerator<string, void> {
      const match = `${escapeGlob(INDEX_ROOT + prefix)}*`;
      let cursor = "0";
      do {
        const page = await run(() => client.scan(cursor, { MATCH: match, COUNT: SCAN_COUNT, TYPE: "zset" }));
        cursor = page.cursor;
        for (const key of page.keys) yield key.slice(INDEX_ROOT.length);
      } while (cursor !== "0");
    },
  };
}

const erasedAnswer = z.tuple([z.number(), z.number()]);

/** Makes the names of an entry's indexes the first member of its JSON. */
function withOwners(text: string, of: readonly string[] = []): string {
  return of.length === 0 ? text : `{"of":${JSON.stringify(of)},${text.slice(1)}`;
}

/** Returns the keys of the indexes that find these entries, with the script's input for each. */
function toIndexes(entries: readonly TextEntry[], now: number) {
  // An entry that keeps its expiry also keeps its position in the indexes.
  const placed = entries.flatMap(({ key, ttl, of = [] }) =>
    ttl === undefined ? [] : of.map((of) => ({ of, key, ttl })),
  );
  return [...Map.groupBy(placed, ({ of }) => of)].map(([of, members]) => {
    const ttl = Math.max(...members.map(({ ttl }) => ttl));
    const scored = members.flatMap(({ key, ttl }) => [now + ttl, key]);
    const given = [Math.ceil(ttl), Math.ceil(ttl * (1 + INDEX_SPARE)), scored.length, ...scored];
    return { key: INDEX_ROOT + of, values: given.map(String) };
  });
}

function escapeGlob(text: string): string {
  return text.replace(/[*?[\]\\^]/g, String.raw`\$&`);
}
