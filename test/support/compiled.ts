import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { PROCESS_ENV, ROOT } from "./service.ts";

/** What a process of the service loads, some of it only where its configuration asks for it. */
const LOADED = [
  "src/app/service.ts",
  "src/platforms.ts",
  "src/setup/setup.ts",
  "src/sandbox/server.ts",
  "adapters/local/index.ts",
  "adapters/slack/index.ts",
  "adapters/slack/install/several-workspaces.ts",
  "adapters/discord/index.ts",
];

/**
 * Compiles the service once in a new checkout, before tests start its processes by the hundred: Node keeps compiled code
 * when a process exits, and most of these are killed.
 */
export function setup(): void {
  // Workers, which begin after this, load the sources from there as well.
  process.env["NODE_COMPILE_CACHE"] = PROCESS_ENV.NODE_COMPILE_CACHE;
  if (existsSync(PROCESS_ENV.NODE_COMPILE_CACHE)) return;
  const imports = LOADED.map((file) => `await import(${JSON.stringify(pathToFileURL(join(ROOT, file)).href)});`);
  const program = [...imports, "process.exit();"].join("\n");
  const options = ["--disable-warning=ExperimentalWarning", "--input-type=module", "--eval", program];
  const { status } = spawnSync(process.execPath, options, {
    env: PROCESS_ENV,
    stdio: ["ignore", "inherit", "inherit"],
  });
  if (status !== 0) throw new Error("The service could not be compiled.");
}
