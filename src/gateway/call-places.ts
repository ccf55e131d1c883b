/** Above this an index is a mistake or an attack, and would make a list of that length. */
export const MAX_TOOL_CALLS = 128;

/** What a fragment says of the call it belongs to; an empty text says nothing. */
export interface CallFragment {
  /** As it was sent, which is not always a number. */
  index: unknown;
  id: string;
  name: string;
  args: string;
}

/** The place among an answer's calls of the call that a fragment belongs to; undefined when its index is absurd. */
export type PlaceOf = (fragment: CallFragment) => number | undefined;

interface OpenCall {
  place: number;
  id: string;
  name: string;
  args: string;
  /** The last character of `args` that is no white space; "" where there is none. */
  end: string;
}

/**
 * Finds the places of one answer's calls. Most servers say them in the index. Some give every call the same one, or
 * none: there a call begins with an id of its own, or, where there are no ids, with a name behind arguments that are
 * whole. An id that is repeated, or made anew for each fragment, begins nothing.
 */
export function createPlaceOf(): PlaceOf {
  /** The call that each index goes on with. */
  const calls = new Map<number, OpenCall>();
  const taken = new Set<number>();

  function begin(key: number): OpenCall {
    // The first call of an index has its place, whatever order they come in; others go behind all there are.
    const place = taken.has(key) ? Math.max(...taken) + 1 : key;
    taken.add(place);
    const call = { place, id: "", name: "", args: "", end: "" };
    calls.set(key, call);
    return call;
  }

  return (fragment) => {
    const index = readIndex(fragment.index);
    const key = index ?? 0;
    if (key < 0 || key >= MAX_TOOL_CALLS) return undefined;
    const open = calls.get(key);
    const call = open === undefined || isAnother(open, fragment, index !== undefined) ? begin(key) : open;
    call.id ||= fragment.id;
    call.name ||= fragment.name;
    call.args += fragment.args;
    call.end = fragment.args.trimEnd().slice(-1) || call.end;
    return call.place < MAX_TOOL_CALLS ? call.place : undefined;
  };
}

/** Some write it as text. */
function readIndex(index: unknown): number | undefined {
  const number = typeof index === "string" && /^\d{1,9}$/.test(index) ? Number(index) : index;
  return Number.isSafeInteger(number) ? Number(number) : undefined;
}

function isAnother(call: OpenCall, { id, name, args }: CallFragment, hasIndex: boolean): boolean {
  const hasOtherId = id !== "" && call.id !== "" && id !== call.id;
  if (hasOtherId && !hasIndex) return true;
  if (name === "" || (id !== "" && id === call.id)) return false;
  if (call.end === "") return hasOtherId && name !== call.name;
  return (hasOtherId || args !== "") && isWhole(call);
}

/** Where every fragment carries the name, to parse all there is with each of them would take seconds in the end. */
function isWhole({ args: json, end }: OpenCall): boolean {
  if (end !== "}") return false;
  try {
    JSON.parse(json);
    return true;
  } catch {
    return false;
  }
}
