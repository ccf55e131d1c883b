import type { Claim, Share } from "../port/shares.ts";

/** Divides numbered parts evenly among processes that start and stop. Pure functions on plain data. */

export interface Shares {
  /** The processes by their ids. */
  readonly members: Readonly<Record<string, Member>>;
  readonly parts: readonly Part[];
}

interface Member {
  /** The process counts as stopped after this time, unless it makes a new claim. */
  until: number;
  /** True if the process is stopping. It then hands over its parts and gets no new parts. */
  isLeaving: boolean;
}

interface Part {
  /** The process that uses the part now. */
  holder?: string;
  /** The process that will use the part next. */
  heir?: string;
}

export const NO_SHARES: Shares = { members: {}, parts: [] };

/**
 * Gives a process its share. A part whose holder is missing or stopping goes to the process with the fewest parts.
 * Then, if a process has at least two parts more than another, one part moves to the other process.
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
    // True if the part's holder counted as stopped but is back, so the part needs no heir.
    const isNeedless = part.heir !== undefined && stays(part.holder) && countOf(part.heir) > countOf(part.holder ?? "");
    if (isNeedless) delete part.heir;
  }

  const isFree = ({ holder, heir }: Part) => heir === undefined && !stays(holder);
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

/** Removes a process at once and leaves its parts without a holder. */
export function leaveShares({ members, parts }: Shares, id: string): Shares {
  return { members: Object.fromEntries(Object.entries(members).filter(([member]) => member !== id)), parts };
}
