const MAX_NAME_CHARS = 64;

interface Speaker {
  platform: string;
  id: string;
  name: string;
}

/**
 * Gives the speakers of one request the names that gateways take: ASCII letters, digits, "_" and "-", at most 64. Two
 * people never share one, and a person has the same throughout. A name with no such character becomes `user-…` with
 * a short hash that is the same every time.
 */
export function createSpeakerNames(): (speaker: Speaker) => string {
  const takenBy = new Map<string, string>();

  return ({ platform, id, name }) => {
    const key = JSON.stringify([platform, id]);
    const hash = shortHash(key);
    const plain = toAscii(name);
    const first = plain === "" ? `user-${hash}` : plain.slice(0, MAX_NAME_CHARS);
    const given = (takenBy.get(first) ?? key) === key ? first : `${first.slice(0, MAX_NAME_CHARS - 8)}-${hash}`;
    takenBy.set(given, key);
    return given;
  };
}

function toAscii(name: string): string {
  return name
    .normalize("NFKD")
    .replace(/\p{Mark}/gu, "")
    .replace(/[^\w-]+/g, "_")
    .replace(/^[_-]+|[_-]+$/g, "");
}

/** FNV-1a in seven characters: it only has to tell people apart, not to hide them. */
function shortHash(text: string): string {
  let hash = 0x811c9dc5;
  for (const character of text) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193);
  return (hash >>> 0).toString(36).padStart(7, "0");
}
