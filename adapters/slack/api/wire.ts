/** Reads an object from Slack. Anything else becomes an empty object. */
export function toBody(value: unknown): Body {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Body) : {};
}

export function toBodies(value: unknown): readonly Body[] {
  return Array.isArray(value) ? value.map(toBody) : [];
}

/** Undefined for an empty string, and for anything but a string. */
export function readText(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** An object from Slack, parsed but otherwise untrusted. */
export type Body = Readonly<Record<string, unknown>>;
