/**
 * Platforms whose variables nobody else sets, so that a name made of the right words in the wrong number is ours too.
 */
const OWN_PREFIX = /^(SLACK|DISCORD|GATEWAY)_/;

/** What Kubernetes sets for each service in the namespace; a service may well be called "gateway". */
const SERVICE_LINK = /_(SERVICE_(HOST|PORT(_.+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_.+)?)?)$/;

const MIN_LENGTH = 8;
/** Shorter names differ from a foreign one by two letters too easily: HOST_NAME is not BOT_NAME. */
const MIN_LENGTH_FOR_TWO_EDITS = 10;

/**
 * The known names that `name` was probably meant to be, all equally near; empty for a name that belongs to
 * somebody else. Pure, and blind to case.
 */
export function similarNames(name: string, known: readonly string[]): string[] {
  const upper = name.toUpperCase();
  if (known.includes(name) || !upper.includes("_") || SERVICE_LINK.test(upper)) return [];
  const near = known
    .map((candidate) => ({ candidate, edits: editDistance(upper, candidate) }))
    .filter(({ candidate, edits }) => isTypingSlip(upper, candidate, edits) || hasOwnWords(upper, candidate));
  const fewest = Math.min(...near.map(({ edits }) => edits));
  return near.filter(({ edits }) => edits === fewest).map(({ candidate }) => candidate);
}

function isTypingSlip(name: string, candidate: string, edits: number): boolean {
  const shorter = Math.min(name.length, candidate.length);
  if (shorter < MIN_LENGTH || !candidate.includes("_")) return false;
  return edits <= (shorter < MIN_LENGTH_FOR_TWO_EDITS ? 1 : 2);
}

/** SLACK_TOKEN for SLACK_BOT_TOKEN, DISCORD_BOT_TOKEN for DISCORD_TOKEN. */
function hasOwnWords(name: string, candidate: string): boolean {
  if (!OWN_PREFIX.test(name)) return false;
  const words = new Set(name.split("_"));
  const candidateWords = new Set(candidate.split("_"));
  if (words.size < 2 || candidateWords.size < 2) return false;
  return words.isSubsetOf(candidateWords) || words.isSupersetOf(candidateWords);
}

/**
 * Insertions, deletions, replacements and swaps of neighbours that turn one text into the other (optimal string
 * alignment).
 */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      current[column] = Math.min(
        at(last, column) + 1,
        at(current, column - 1) + 1,
        at(last, column - 1) + (same ? 0 : 1),
        swapped ? at(beforeLast, column - 2) + 1 : Infinity,
      );
    }
    [beforeLast, last] = [last, current];
  }
  return at(last, b.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Infinity;
}
