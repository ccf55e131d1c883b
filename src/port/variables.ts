import { isIP } from "node:net";
import { z } from "zod";

/** The variables that are set, trimmed. */
export type GivenVariables = Readonly<Record<string, string>>;

/** A row of the documentation: variables that belong together, and their meaning. */
export interface VariableEntry<Name extends string = string> {
  names: readonly Name[];
  /** Markdown, short enough for a cell of a table. Paths are relative to the repository. */
  meaning: string;
  /** What the program does while the variables are unset. Absent if the default shows this well enough. */
  unset?: string;
}

/** A mistake in the configuration. Never quotes a value, because a secret can be in the wrong variable. */
export interface ConfigProblem {
  /** The variable with a wrong value; absent if `what` is a whole sentence. */
  variable?: string;
  /** Completes "VARIABLE …", or is a sentence that says how to fix the mistake. */
  what: string;
}

/** A configuration, or all its problems. Neither is set if the variables do not switch the platform on. */
export interface ConfigReading<Config> {
  config?: Config | undefined;
  problems: readonly ConfigProblem[];
}

/** Validates variables by their schemas. `conflicts` are problems that no single schema finds. */
export function readVariables<Shape extends z.ZodRawShape, Config>(
  shape: Shape,
  given: GivenVariables,
  toConfig: (values: z.infer<z.ZodObject<Shape>>) => Config | undefined,
  conflicts: readonly ConfigProblem[] = [],
): ConfigReading<Config> {
  const { data, error } = z.object(shape).safeParse(given);
  const issues = (error?.issues ?? []).map(({ path, message }) => ({ variable: String(path[0]), what: message }));
  const problems = [...issues, ...conflicts];
  return data === undefined || problems.length > 0 ? { problems } : { config: toConfig(data), problems };
}

const LOOPBACK_NAMES = ["localhost", "127.0.0.1", "[::1]", "::1"];

/** True if a host name or address belongs to this machine only. An IPv6 address can have brackets. */
export function isLoopback(host: string): boolean {
  return LOOPBACK_NAMES.includes(host.toLowerCase()) || (isIP(host) === 4 && host.startsWith("127."));
}

/** Accepts an `http` or `https` address and leaves it unchanged. */
export function webAddressText() {
  return z
    .string()
    .refine(isWebAddress, "must be an address that starts with https:// or http://, without a password or a query");
}

/** Accepts the same addresses and removes trailing slashes, so that paths can be appended. */
export function webAddress() {
  return webAddressText().transform((url) => url.replace(/\/+$/, ""));
}

function isWebAddress(text: string): boolean {
  return (
    isAddress(text, ["https:", "http:"]) && !/[?#]/.test(text) && new URL(text).username + new URL(text).password === ""
  );
}

export function isAddress(text: string, protocols: string[]): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url !== undefined && protocols.includes(url.protocol) && url.hostname !== "" && !/\s/.test(text);
}

export function secret() {
  return z.string().regex(/^[\x21-\x7e]+$/, "must be only the key: it has a space or a character that no key has");
}

/** Splits a comma-separated list. Keeps each entry once, in order; empty if the variable is unset. */
export function list(entry: RegExp, message: string, isValid: (part: string) => boolean = () => true) {
  return z
    .string()
    .default("")
    .transform((text) => [...new Set(text.split(",").map((part) => part.trim()))].filter((part) => part !== ""))
    .refine((entries) => entries.every((part) => entry.test(part) && isValid(part)), message);
}

export function choice<const T extends string>(...values: T[]) {
  return z.enum(values, `must be one of ${values.join(", ")}`);
}

export function wholeNumber(min: number, max: number) {
  const message = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,12}$/, message)
    .transform(Number)
    .refine((value) => value >= min && value <= max, message);
}

export function needsChars(count: number): string {
  return `must have at least ${count} characters`;
}

const KEY_BYTES = 32;

/** A key of 32 bytes for AES-256, in base64 or in hex. */
export function encryptionKey() {
  return secret()
    .refine((text) => keyBytes(text)?.length === KEY_BYTES, `must be ${KEY_BYTES} bytes, written in base64 or in hex`)
    .transform((text) => keyBytes(text) ?? new Uint8Array());
}

/** Decodes 64 hexadecimal digits, else base64 in either alphabet; undefined if the text is neither. */
function keyBytes(text: string): Uint8Array | undefined {
  if (/^[0-9a-f]{64}$/i.test(text)) return Uint8Array.from(Buffer.from(text, "hex"));
  return /^[\w+/-]+={0,2}$/.test(text) ? Uint8Array.from(Buffer.from(text, "base64")) : undefined;
}
