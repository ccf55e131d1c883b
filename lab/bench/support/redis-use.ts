import type { RedisConnection } from "../../../src/store/redis-connection.ts";

export interface RedisUse {
  /** Includes commands inside scripts. */
  commands: number;
  /** Bytes that Redis received and sent. */
  bytes: number;
  cpuMs: number;
}

interface UseWithin extends RedisUse {
  durationMs: number;
  /** Subtracts the idle use that `other` has measured. */
  without(other: UseWithin): UseWithin;
  per(count: number): RedisUse;
  perSecond(): RedisUse;
}

export interface UseSoFar {
  since(before: UseSoFar): UseWithin;
  readonly total: RedisUse;
  readonly atMs: number;
}

export async function readRedisUse({ client, run }: RedisConnection): Promise<UseSoFar> {
  const info = await run(() => client.info());
  const read = (name: string) => Number(new RegExp(`^${name}:([\\d.]+)`, "m").exec(info)?.[1]);
  const total = {
    commands: read("total_commands_processed"),
    bytes: read("total_net_input_bytes") + read("total_net_output_bytes"),
    cpuMs: (read("used_cpu_user") + read("used_cpu_sys")) * 1_000,
  };
  const atMs = performance.now();
  return { total, atMs, since: (before) => toUse(combine(total, before.total, -1), atMs - before.atMs) };
}

function toUse(use: RedisUse, durationMs: number): UseWithin {
  return {
    ...use,
    durationMs,
    without: (other) => toUse(combine(use, other, -durationMs / other.durationMs), durationMs),
    per: (count) => scale(use, 1 / count),
    perSecond: () => scale(use, 1_000 / durationMs),
  };
}

function combine(one: RedisUse, other: RedisUse, factor: number): RedisUse {
  return {
    commands: one.commands + factor * other.commands,
    bytes: one.bytes + factor * other.bytes,
    cpuMs: one.cpuMs + factor * other.cpuMs,
  };
}

function scale({ commands, bytes, cpuMs }: RedisUse, factor: number): RedisUse {
  return { commands: commands * factor, bytes: bytes * factor, cpuMs: cpuMs * factor };
}
