/** Numbered parts that a platform lets several processes divide among them. Types only. */

export interface Claim {
  id: string;
  count: number;
  /** The parts that it has in use. */
  inUse: readonly number[];
  /** The most parts that it starts at a time; 0: it accepts no further ones at the moment. */
  atOnce: number;
  isLeaving: boolean;
  /** Milliseconds from `now` for which it counts as alive. */
  forMs: number;
  now: number;
}

export interface Share {
  /** The parts that it should have in use or should start. */
  own: readonly number[];
  /** Those of `inUse` that no process handed over: never used before, or left by a process that died. */
  inherited: readonly number[];
  /** Some parts belong to no process yet. */
  isOpen: boolean;
  /** True while no other process would take its parts. */
  isAlone: boolean;
}

/** One process's view of the parts that it shares with others. */
export interface SharedParts {
  /** Call it every second while this process has a part. Rejects if its share is unknown. */
  claim(claim: Pick<Claim, "count" | "inUse" | "atOnce" | "isLeaving">): Promise<Share>;
  /** Returns all parts; `count` is their number. Never rejects. */
  leave(count: number): Promise<void>;
  /** Takes a turn that comes once in `everyMs` milliseconds across all processes. False if it is not due yet. */
  takeTurn(name: string, everyMs: number): Promise<boolean>;
}
