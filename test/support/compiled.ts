import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { PROCESS_ENV, ROOT } from "../../lab/support/service.ts";

/** The modules that a process of the service loads. It loads some only if its configuration needs them. */
const LOADED = [
  "src/setup/setup.ts",
  "src/sandbox/server.ts",
  "src/admin/admin.ts",
  "src/doctor/sections.ts",
  "adapters/local/adapter.ts",
  "adapters/slack/adapter.ts",
  "adapters/slack/install/several-workspaces.ts",
  "adapters/discord/adapter.ts",
  // It comes last, because it ends the process.
  "src/main.ts",
];
/** The packages that a process with Redis also loads. */
const PACKAGES = ["@keyv/redis"];
/** The exit code of `main.ts` if the configuration is wrong. */
const EX_CONFIG = 78;

/**
 * Compiles changed modules of the service before tests start hundreds of its processes. Node stores compiled code only
 * when a process exits, and most of these processes are killed.
 */
export function setup(): void {
  // Workers start later and load the sources from there too.
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
