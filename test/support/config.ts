import * as core from "../../src/config/config.ts";
import type { ReadText } from "../../src/config/mcp-servers.ts";
import { PLATFORMS } from "../../src/platforms.ts";
import { loadModules } from "../../src/port/module.ts";

export const modules = await loadModules(PLATFORMS);
export const CONFIG_VARIABLES: readonly string[] = core.variableNames(modules);

export function readConfig(env: Readonly<Record<string, string | undefined>>, readText?: ReadText): core.Config {
  return core.readConfig(env, modules, readText);
}

/** One platform's configuration. Undefined if the platform is off. */
export function platformOf({ platforms }: Pick<core.Config, "platforms">, platform: string): unknown {
  return platforms.find(({ module }) => module.platform === platform)?.config;
}
