import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { PROCESS_ENV, ROOT } from "./service.ts";

/** What a process of the service loads, some of it only where its configuration asks for it. */
const LOADED = [
  "src/setup/setup.ts",
  "src/sandbox/server.ts",
  "src/admin/admin.ts",
  "src/doctor/sections.ts",
  "adapters/local/index.ts",
  "adapters/slack/index.ts",
  "adapters/slack/install/several-workspaces.ts",
  "adapters/discord/index.ts",
  // The last one: it ends the process.
  "src/main.ts",
];
/** What a process with a Redis loads besides. */
const PACKAGES = ["bullmq", "@keyv/redis"];
/** With what `main.ts` ends where it finds something wrong in its configuration. */
const EX_CONFIG = 78;

/**
 * Compiles what has changed of the service before tests start its processes by the hundred: Node keeps compiled code when
 * a process exits, and most of these are killed.
 */
export function setup(): void {
  // Workers, which begin after this, load the sources from there as well.
  process.env["NODE_COMPILE_CACHE"] = PROCESS_ENV.NODE_COMPILE_CACHE;
  const specifiers = [...PACKAGES, ...LOADED.map((file) => pathToFileURL(join(ROOT, file)).href)];
  const program = specifiers.map((specifier) => `await import(${JSON.stringify(specifier)});`).join("\n");
  const options = ["--disable-warning=ExperimentalWarning", "--input-type=module", "--eval", program];
  const { status, stderr } = spawnSync(process.execPath, options, {
    cwd: ROOT,
    env: { ...PROCESS_ENV, PORT: "none" },
    encoding: "utf8",
  });
  if (status !== EX_CONFIG) throw new Error(`The service could not be compiled: ${stderr}`);
}
