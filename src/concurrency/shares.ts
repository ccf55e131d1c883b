/** Numbered parts of something, shared out evenly among processes that come and go. Pure and plain data. */

export interface Shares {
  /** The processes, by their ids. */
  readonly members: Readonly<Record<string, Member>>;
  /** The parts, by their numbers. */
  readonly parts: readonly Part[];
}

interface Member {
  /** A process that does not say that it lives counts as gone from then on. */
  until: number;
  /** The process takes nothing more, and gives what it has to others. */
  isLeaving: boolean;
}

interface Part {
  /** The process that uses it, until another one does too. */
  holder?: string;
  /** The process that is about to use it, and to take it over. */
  heir?: string;
}

export const NO_SHARES: Shares = { members: {}, parts: [] };

export interface Claim {
  id: string;
  count: number;
  /** The parts that it has in use. */
  inUse: readonly number[];
  /** The parts that it makes ready at a time, at most; 0: it takes no further ones now. */
  atOnce: number;
  isLeaving: boolean;
  /** Milliseconds from `now` for which it counts as living. */
  forMs: number;
  now: number;
}

export interface Share {
  /** The parts that it is to have in use, or to make ready. */
  own: readonly number[];
  /** Those of `inUse` that were nobody's before: of a process that is gone without having handed them over, or never used. */
  inherited: readonly number[];
  /** Some parts are nobody's yet. */
  isOpen: boolean;
  /** True while nobody else would take its parts. */
  isAlone: boolean;
}

/** The parts as one process sees them, which shares them with others. */
export interface SharedParts {
  /** To be called every second, for as long as this process has anything. Rejects while its share is unknown. */
  claim(claim: Pick<Claim, "count" | "inUse" | "atOnce" | "isLeaving">): Promise<Share>;
  /** Gives all parts back; `count` is their number. Never rejects. */
  leave(count: number): Promise<void>;
  /** Takes a turn that comes once in `everyMs` milliseconds, among all processes. False: not yet. */
  takeTurn(name: string, everyMs: number): Promise<boolean>;
}

/**
 * Gives a process its share. Parts of nobody, or of a process that leaves, go to those with the fewest; then a process
 * that has two fewer than another takes one of the other's.
 */
export function claimShare(before: Shares, claim: Claim): { after: Shares; share: Share } {
  const { id, count, inUse, atOnce, isLeaving, forMs, now } = claim;
  const known = Object.entries(before.members).filter(([, { until }]) => until > now);
  const members = { ...Object.fromEntries(known), [id]: { until: now + forMs, isLeaving } };
  const stays = (member = "") => members[member]?.isLeaving === false;
  const staying = Object.keys(members).filter(stays);
  const parts = Array.from({ length: count }, (_, number): Part => {
    const { holder = "", heir = "" } = before.parts[number] ?? {};
    const isHeld = holder in members;
    if (inUse.includes(number) && (!isHeld || heir === id)) return { holder: id };
    return { ...(isHeld && { holder }), ...(stays(heir) && { heir }) };
  });
  const inherited = inUse.filter((number) => !((before.parts[number]?.holder ?? "") in members));
  const isOf = (member: string) => (part: Part) => (part.heir ?? part.holder) === member;
  const countOf = (member: string) => parts.filter(isOf(member)).length;
  for (const part of parts) {
    // Its holder was taken for gone, and is there again.
    const isNeedless = part.heir !== undefined && stays(part.holder) && countOf(part.heir) > countOf(part.holder ?? "");
    if (isNeedless) delete part.heir;
  }

  const isFree = ({ holder, heir }: Part) => heir === undefined && !stays(holder);
  /** The next part for this process; undefined where it has its share. */
  function findNext(): Part | undefined {
    const own = countOf(id);
    const free = parts.find(isFree);
    if (free !== undefined) return staying.every((member) => own <= countOf(member)) ? free : undefined;
    const most = staying.toSorted((one, other) => countOf(other) - countOf(one))[0] ?? id;
    if (countOf(most) - own < 2) return undefined;
    return parts.find(({ holder, heir }) => holder === most && heir === undefined);
  }
  const room = isLeaving ? 0 : atOnce - parts.filter(({ heir }) => heir === id).length;
  for (let taken = 0; taken < room; taken++) {
    const next = findNext();
    if (next === undefined) break;
    next.heir = id;
  }

  const own = parts.flatMap(({ holder, heir }, number) => (holder === id || heir === id ? [number] : []));
  const isOpen = parts.some(({ holder, heir }) => holder === undefined && heir === undefined);
  return {
    after: { members, parts },
    share: { own, inherited, isOpen, isAlone: staying.every((member) => member === id) },
  };
}

/** Takes a process out at once: what it had is nobody's. */
export function leaveShares({ members, parts }: Shares, id: string): Shares {
  return { members: Object.fromEntries(Object.entries(members).filter(([member]) => member !== id)), parts };
}
