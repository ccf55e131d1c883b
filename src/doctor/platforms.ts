import type { Config } from "../config/config.ts";
import { namedGroupsOf } from "../policy/access.ts";
import type { Finding } from "../port/finding.ts";
import type { AdapterModule, EventsAddress } from "../port/module.ts";
import type { Section } from "./report.ts";

export function createPlatformSections(config: Config): Section[] {
  return config.modules
    .filter(({ check }) => check !== undefined)
    .map((module) => ({ title: module.name, run: (signal) => checkPlatform(module, config, signal) }));
}

export async function checkPlatform(
  module: AdapterModule,
  { platforms, policy: { policy } }: Config,
  signal: AbortSignal,
): Promise<Finding[]> {
  const on = platforms.find((platform) => platform.module === module);
  if (on === undefined) return [{ ok: true, what: `Off: ${module.switches[0]} is not set.` }];
  const { access = {} } = policy;
  const facts = { namedGroups: namedGroupsOf(access), hasRules: (access.rules ?? []).length > 0 };
  return (await module.check?.(on.config, facts, signal)) ?? [];
}

/** Lists the addresses to which platforms send events. Empty if other processes receive the events. */
export function findEventsAddresses({ platforms, role }: Pick<Config, "platforms" | "role">): NamedAddress[] {
  if (role === "worker") return [];
  return platforms.flatMap(({ module, config }) => {
    const address = module.eventsAddress?.(config);
    return address === undefined ? [] : [{ platform: module.name, ...address }];
  });
}

export interface NamedAddress extends EventsAddress {
  platform: string;
}
