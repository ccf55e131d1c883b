import { globSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";

/** A message as a platform sends it, in the form that its documentation or that of an app gives, and how it reads. */
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
