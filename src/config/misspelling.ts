import { editDistance } from "../text/edit-distance.ts";

/** Platforms whose variables nobody else sets, so that a name made of the right words in the wrong number is ours too. */
const OWN_PREFIX = /^(SLACK|DISCORD|GATEWAY)_/;

/** Kubernetes sets such variables for each service in the namespace, and a service may well be called "gateway". */
const SERVICE_LINK = /_(SERVICE_(HOST|PORT(_.+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_.+)?)?)$/;

const MIN_CHARS = 8;
/** Shorter names differ from a foreign one by two letters too easily: HOST_NAME is not BOT_NAME. */
const MIN_CHARS_FOR_TWO_EDITS = 10;

/** The known names nearest to `name`, blind to case; empty for a name that belongs to somebody else. Pure. */
export function similarNames(name: string, known: readonly string[]): string[] {
  const upper = name.toUpperCase();
  if (known.includes(name) || !upper.includes("_") || SERVICE_LINK.test(upper)) return [];
  const near = known
    .filter((candidate) => isTypingSlip(upper, candidate) || hasOwnWords(upper, candidate))
    .map((candidate) => ({ candidate, edits: editDistance(upper, candidate) }));
  const fewest = Math.min(...near.map(({ edits }) => edits));
  return near.filter(({ edits }) => edits === fewest).map(({ candidate }) => candidate);
}

function isTypingSlip(name: string, candidate: string): boolean {
  const shorter = Math.min(name.length, candidate.length);
  if (shorter < MIN_CHARS || !candidate.includes("_")) return false;
  const most = shorter < MIN_CHARS_FOR_TWO_EDITS ? 1 : 2;
  // A letter more is an edit more: of a whole environment, which each start asks about, little is left to compare.
  return Math.abs(name.length - candidate.length) <= most && editDistance(name, candidate) <= most;
}

/** SLACK_TOKEN for SLACK_BOT_TOKEN, DISCORD_BOT_TOKEN for DISCORD_TOKEN. */
function hasOwnWords(name: string, candidate: string): boolean {
  if (!OWN_PREFIX.test(name)) return false;
  const words = new Set(name.split("_"));
  const candidateWords = new Set(candidate.split("_"));
  if (words.size < 2 || candidateWords.size < 2) return false;
  return words.isSubsetOf(candidateWords) || words.isSupersetOf(candidateWords);
}
