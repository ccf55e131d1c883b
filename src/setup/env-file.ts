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
 * Sets variables in the text of an `.env`. The line of one that stands there is replaced, others are appended, and every
 * other line stays as it is. Throws where Node would read something else out of the result.
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
  // The loop above replaces only the first line of a value that has several.
  const isLong = Object.keys(values).some((name) => before[name]?.includes("\n"));
  if (isLong || !isDeepStrictEqual({ ...parseEnv(merged) }, { ...before, ...values })) {
    throw new Error("These values cannot be put into the file without changing what else stands there.");
  }
  return merged;
}

/** The text of the file, "" where there is none. Throws where it cannot be read. */
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

/** Replaces the file whole or not at all, readable for its owner alone. */
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

/** A link stays one: what it leads to is written. */
function toTarget(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** Node knows no escapes, so whatever quote the value does not hold goes around it. */
function quote(value: string): string {
  if (/^[\w./:@%+=,~-]+$/.test(value)) return value;
  const mark = ["'", "`", '"'].find((each) => !value.includes(each)) ?? "'";
  return mark + value + mark;
}
