/** Numbered parts of a platform's connection, such as shards, that several processes divide among them. Types only. */

export interface Claim {
  id: string;
  count: number;
  /** The parts that the process uses. */
  inUse: readonly number[];
  /** How many parts the process can start at once; 0: it accepts no part at the moment. */
  atOnce: number;
  isLeaving: boolean;
  /** How long after `now` the process counts as alive, in milliseconds. */
  forMs: number;
  now: number;
}

export interface Share {
  /** The parts that the process should use or start. */
  own: readonly number[];
  /** The parts of `inUse` that no other process handed over: new parts, and parts of a process that died. */
  inherited: readonly number[];
  /** True if some parts belong to no process yet. */
  isOpen: boolean;
  /** True while no other process could take over the parts. */
  isAlone: boolean;
}

export interface SharedParts {
  /** Must be called every second while this process uses a part. Rejects if the process's share is unknown. */
  claim(claim: Pick<Claim, "count" | "inUse" | "atOnce" | "isLeaving">): Promise<Share>;
  /** Gives up all parts. `count` is the number of all parts. Never rejects. */
  leave(count: number): Promise<void>;
  /** True if it is the caller's turn. Among all processes, a name has one turn in `everyMs` milliseconds. */
  takeTurn(name: string, everyMs: number): Promise<boolean>;
}
