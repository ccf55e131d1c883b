import { randomUUID } from "node:crypto";
import {
  accessSync,
  constants,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { isDeepStrictEqual, parseEnv } from "node:util";

const OWNER_ONLY = 0o600;

/**
 * Sets variables in the text of an `.env`: replaces the lines of existing variables, appends the others, and keeps all
 * other lines. Throws if Node would read other values from the result.
 */
export function mergeEnv(text: string, values: Readonly<Record<string, string>>): string {
  const lines = text === "" ? [] : text.replace(/\n$/, "").split("\n");
  for (const [name, value] of Object.entries(values)) {
    const isOf = new RegExp(`^(\\s*(?:export\\s+)?)${name}\\s*=.*?(\\r?)$`, "s");
    const index = lines.findLastIndex((line) => isOf.test(line));
    const [, before = "", end = ""] = isOf.exec(lines[index] ?? "") ?? [];
    const line = `${before}${name}=${quote(value)}${end}`;
    if (index === -1) lines.push(line);
    else lines[index] = line;
  }
  const merged = lines.length === 0 ? "" : `${lines.join("\n")}\n`;
  const before = parseEnv(text);
  // The loop replaced only the first line of a value that had several lines.
  const isLong = Object.keys(values).some((name) => before[name]?.includes("\n"));
  if (isLong || !isDeepStrictEqual({ ...parseEnv(merged) }, { ...before, ...values })) {
    throw new Error("These values cannot be added to the file without changing its other lines.");
  }
  return merged;
}

/** Returns the file's text, or "" if it does not exist. Throws if it cannot be read. */
export function readEnvFile(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
    throw error;
  }
}

export function canWriteEnvFile(path: string): boolean {
  try {
    const target = toTarget(path);
    accessSync(dirname(target), constants.W_OK);
    const found = statSync(target, { throwIfNoEntry: false });
    if (found === undefined) return true;
    accessSync(target, constants.R_OK | constants.W_OK);
    return found.isFile();
  } catch {
    return false;
  }
}

/** Replaces the file completely or not at all. Only its owner can read it. */
export function writeEnvFile(path: string, text: string): void {
  const target = toTarget(path);
  const draft = `${target}.${randomUUID()}`;
  try {
    writeFileSync(draft, text, { mode: OWNER_ONLY, flag: "wx", flush: true });
    renameSync(draft, target);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Returns the target of a symbolic link, so that the link itself stays. */
function toTarget(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** Quotes a value with a quotation mark that it does not contain, because Node has no escapes in this file. */
function quote(value: string): string {
  if (/^[\w./:@%+=,~-]+$/.test(value)) return value;
  const mark = ["'", "`", '"'].find((each) => !value.includes(each)) ?? "'";
  return mark + value + mark;
}
