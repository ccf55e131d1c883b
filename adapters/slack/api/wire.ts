/** Reads an object from Slack. Returns an empty object for anything else. */
export function toBody(value: unknown): Body {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Body) : {};
}

export function toBodies(value: unknown): readonly Body[] {
  return Array.isArray(value) ? value.map(toBody) : [];
}

/** Undefined for anything but a string, and for an empty string. */
export function readText(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** An object from Slack. It was parsed but is otherwise untrusted. */
export type Body = Readonly<Record<string, unknown>>;
