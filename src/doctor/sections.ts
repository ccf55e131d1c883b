import { NEVER, runWithin } from "../concurrency/deadlines.ts";
import type { Config } from "../config/config.ts";
import { namedModels } from "../config/summary.ts";
import { describeError } from "../port/errors.ts";
import type { Finding } from "../port/finding.ts";
import { checkAddress } from "./address.ts";
import { checkData } from "./data.ts";
import { checkGateway, type GatewayCheckOptions } from "./gateway.ts";
import { checkMcp } from "./mcp.ts";
import { createPlatformSections, findEventsAddresses } from "./platforms.ts";
import { checkPolicy } from "./policy.ts";
import { checkRedis } from "./redis.ts";
import type { Section } from "./report.ts";

const SECTION_MS = 60_000;

interface SectionsOptions extends Pick<GatewayCheckOptions, "mayChat"> {
  /** Warnings about changes of the policy file, which only a running service knows. */
  policyWarnings?: readonly string[];
}

export function createSections(config: Config, options: SectionsOptions): Section[] {
  const { redisUrl, mcp, policy } = config;
  const redis = redisUrl === undefined ? [] : [{ title: "Redis", run: () => checkRedis(redisUrl) }];
  return [
    { title: "Configuration", run: async () => describeRoles(config) },
    {
      title: "Gateway",
      run: (signal) =>
        checkGateway(
          config.gateway,
          { mayChat: options.mayChat, historyMaxTokens: config.limits.historyMaxTokens },
          signal,
        ),
    },
    { title: "Storage", run: async () => checkData(config.dataDir) },
    ...redis,
    ...(policy.path === undefined
      ? []
      : [
          {
            title: "Policy",
            run: async () => checkPolicy(policy.policy, namedModels(config.gateway), options.policyWarnings),
          },
        ]),
    ...(mcp.servers.length + mcp.refused.length === 0 ? [] : [{ title: "Tools", run: () => checkMcp(mcp) }]),
    { title: "Address", run: (signal) => checkAddress(config, findEventsAddresses(config), signal) },
    ...createPlatformSections(config),
  ];
}

function describeRoles({ role }: Config): Finding[] {
  const inOrder = { ok: true, what: "Every variable is valid." };
  if (role === "all") return [inOrder];
  const [does, others] = role === "ingress" ? ["only receives events", "worker"] : ["only answers", "ingress"];
  return [inOrder, { ok: true, what: `ROLE=${role} ${does}: it needs a ROLE=${others} on the same Redis.` }];
}

/** Never rejects: a check that crashes is reported as a finding. */
export async function examineSection({ run }: Section): Promise<Finding[]> {
  try {
    return await runWithin(SECTION_MS, run, NEVER);
  } catch (error) {
    return [{ ok: false, what: `This check failed: ${describeError(error)}` }];
  }
}
