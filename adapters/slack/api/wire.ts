/** Reads an object that Slack sent; an empty one for anything else. */
export function toBody(value: unknown): Body {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Body) : {};
}

export function toBodies(value: unknown): readonly Body[] {
  return Array.isArray(value) ? value.map(toBody) : [];
}

/** Undefined for anything but text, and for an empty one. */
export function readText(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** An object that Slack sent, parsed and otherwise untrusted. */
export type Body = Readonly<Record<string, unknown>>;
