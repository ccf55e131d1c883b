/** undefined when it is not JSON. The parser's own error quotes the text, so it goes no further. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

export function isJson(text: string): boolean {
  return parseJson(text) !== undefined;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
