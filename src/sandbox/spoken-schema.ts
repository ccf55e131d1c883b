import type { SandboxMessage } from "./chat-request.ts";
import { textOf } from "./tokens.ts";

type Schema = Readonly<Record<string, unknown>>;

/** Instructions stand at the beginning; what comes later in a long text is matter. */
const MAX_SEARCHED_CHARS = 50_000;
const MAX_ATTEMPTS = 200;

/** The newest JSON schema written in a message, as clients do that ask for `json_object` and trust no `json_schema`. */
export function findSpokenSchema(messages: readonly SandboxMessage[]): Schema | undefined {
  for (const message of messages.toReversed()) {
    const found = message.role === "system" || message.role === "user" ? findSchema(textOf(message)) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

function findSchema(whole: string): Schema | undefined {
  const text = whole.slice(0, MAX_SEARCHED_CHARS);
  const ends = Array.from(text.matchAll(/\}[ \t]*$/gm), ({ index }) => index + 1);
  let attempts = 0;
  for (const { index, 0: before } of text.matchAll(/(?:^|:)[ \t]*(?=\{)/gm)) {
    const begin = index + before.length;
    for (const end of ends) {
      if (end <= begin) continue;
      if (++attempts > MAX_ATTEMPTS) return undefined;
      const value = parseObject(text.slice(begin, end));
      if (value === undefined) continue;
      if (isSchema(value)) return value;
      break;
    }
  }
  return undefined;
}

function isSchema(value: object): value is Schema {
  return "properties" in value && typeof value.properties === "object" && value.properties !== null;
}

/** Undefined for text that is no JSON object. */
export function parseObject(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
