import type { Logger } from "pino";
import { FencedError } from "../concurrency/fence.ts";
import { type Bell, type Bells, LOCK_MS } from "./bells.ts";

const PROLONG_MS = 700;
/** Clocks run unevenly, and a call that begins now arrives a little later. */
const MARGIN_MS = 300;

/** The time for which a process may count on being the only one that works on a lane. */
export interface Lease {
  /** Aborts with `lost` when others may have taken over. */
  readonly signal: AbortSignal;
  /** Throws a `FencedError` from then on. */
  check(): void;
  end(): void;
}

/** Keeps the leases of all bells that this process hears, by one call for all. */
export interface Leases {
  /** Rejects with a `FencedError` where it is lost already. */
  begin(bell: Bell): Promise<Lease>;
  close(): void;
}

interface Entry {
  bell: Bell;
  controller: AbortController;
  /** By the monotonic clock of this process, which goes on while it stands still. */
  until: number;
}

export function createLeases(bells: Pick<Bells, "prolong">, log: Logger): Leases {
  const entries = new Set<Entry>();
  let isProlonging = false;

  function lose(entry: Entry): void {
    if (!entries.delete(entry)) return;
    log.warn({ laneId: entry.bell.laneId }, "a lane was lost: another process may have taken it over");
    entry.controller.abort("lost");
  }

  function check(entry: Entry): void {
    if (performance.now() > entry.until) lose(entry);
    if (entry.controller.signal.aborted) throw new FencedError("Another process may have taken this over.");
  }

  async function prolong(due: readonly Entry[]): Promise<void> {
    const from = performance.now();
    const lost = await bells.prolong(due.map(({ bell }) => bell));
    for (const entry of due) {
      if (lost.includes(entry.bell.id)) lose(entry);
      else entry.until = from + LOCK_MS - MARGIN_MS;
    }
  }

  async function prolongAll(): Promise<void> {
    // Where this process stood still, nothing is to be written before that is known.
    for (const entry of entries) if (performance.now() > entry.until) lose(entry);
    if (isProlonging || entries.size === 0) return;
    isProlonging = true;
    try {
      await prolong([...entries]);
    } catch (error) {
      log.debug({ err: error }, "leases could not be prolonged; they end by themselves");
    } finally {
      isProlonging = false;
    }
  }

  const timer = setInterval(() => void prolongAll(), PROLONG_MS).unref();

  return {
    async begin(bell) {
      // It was locked some time ago, nobody knows when.
      const entry: Entry = { bell, controller: new AbortController(), until: 0 };
      await prolong([entry]);
      if (entry.until === 0) throw new FencedError("The lane was lost before it was begun.");
      entries.add(entry);
      return {
        signal: entry.controller.signal,
        check: () => check(entry),
        end: () => void entries.delete(entry),
      };
    },
    close: () => clearInterval(timer),
  };
}
