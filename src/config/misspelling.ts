import { editDistance } from "../text/edit-distance.ts";

/** Kubernetes sets such variables for each service in the namespace, and a service can have the name "gateway". */
const SERVICE_LINK = /_(SERVICE_(HOST|PORT(_.+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_.+)?)?)$/;

const MIN_CHARS = 8;
/** Shorter names allow only one edit, because two could lead to an unrelated name: HOST_NAME is not BOT_NAME. */
const MIN_CHARS_FOR_TWO_EDITS = 10;

/**
 * Returns the known names that are most similar to `name`, ignoring case. Returns nothing if the variable belongs to
 * another program. A name that starts with one of `ownWords` always belongs to Palaver, so missing or extra words in it
 * are a misspelling too. Pure.
 */
export function similarNames(name: string, known: readonly string[], ownWords: readonly string[]): string[] {
  const upper = name.toUpperCase();
  if (known.includes(name) || !upper.includes("_") || SERVICE_LINK.test(upper)) return [];
  const near = known
    .filter((candidate) => isTypingSlip(upper, candidate) || hasSameWords(upper, candidate, ownWords))
    .map((candidate) => ({ candidate, edits: editDistance(upper, candidate) }));
  const fewest = Math.min(...near.map(({ edits }) => edits));
  return near.filter(({ edits }) => edits === fewest).map(({ candidate }) => candidate);
}

function isTypingSlip(name: string, candidate: string): boolean {
  const shorter = Math.min(name.length, candidate.length);
  if (shorter < MIN_CHARS || !candidate.includes("_")) return false;
  const most = shorter < MIN_CHARS_FOR_TWO_EDITS ? 1 : 2;
  // A difference in length is a lower limit for the edits. This cheap check rules out most variables at each start.
  return Math.abs(name.length - candidate.length) <= most && editDistance(name, candidate) <= most;
}

/** True for EXAMPLE_TOKEN and EXAMPLE_BOT_TOKEN, whichever is the known name. */
function hasSameWords(name: string, candidate: string, ownWords: readonly string[]): boolean {
  if (!ownWords.some((word) => name.startsWith(`${word}_`))) return false;
  const words = new Set(name.split("_"));
  const candidateWords = new Set(candidate.split("_"));
  if (words.size < 2 || candidateWords.size < 2) return false;
  return words.isSubsetOf(candidateWords) || words.isSupersetOf(candidateWords);
}
