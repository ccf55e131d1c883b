import { globSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * A message as a platform sends it, from the platform's documentation or from an app, and the text that it should
 * become.
 */
export interface Shape {
  name: string;
  about: string;
  message: Readonly<Record<string, unknown>>;
  text: string;
}

export function readShapes(platform: string): Shape[] {
  const folder = fileURLToPath(new URL(`../fixtures/shown/${platform}/`, import.meta.url));
  return globSync("*.json", { cwd: folder })
    .sort()
    .map((file) => ({ name: basename(file, ".json"), ...JSON.parse(readFileSync(`${folder}${file}`, "utf8")) }));
}
