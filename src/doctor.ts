/** `npm run doctor`: tries everything the service will need and says in plain words what is missing. */
import { parseArgs } from "node:util";
import { runWithin } from "./concurrency/deadlines.ts";
import { type Config, ConfigError, readConfig } from "./config/config.ts";
import { secretsOf } from "./config/summary.ts";
import { checkAddress } from "./doctor/address.ts";
import { checkData } from "./doctor/data.ts";
import { checkGateway, type GatewayCheckOptions } from "./doctor/gateway.ts";
import { checkMcp } from "./doctor/mcp.ts";
import { createPlatformSections, findEventsAddress } from "./doctor/platforms.ts";
import { checkRedis } from "./doctor/redis.ts";
import { formatFinding, formatSummary, type ReportOptions, type Section } from "./doctor/report.ts";
import { createRedactor } from "./log/redact.ts";
import type { Finding } from "./port/finding.ts";

const SECTION_MS = 60_000;
const USAGE = `Usage: npm run doctor [-- --no-chat]

Tries what the configuration names: the gateway, the storage, the addresses and the platforms. Writes nothing into any
conversation. Ends with 0 when everything works, else with 1.

  --no-chat   do not ask the model a question, which costs a few tokens`;

function createSections(config: Config, options: GatewayCheckOptions): Section[] {
  const { redisUrl, mcp } = config;
  const redis = redisUrl === undefined ? [] : [{ title: "Redis", run: () => checkRedis(redisUrl) }];
  return [
    { title: "Configuration", run: async () => describeRoles(config) },
    { title: "Gateway", run: (signal) => checkGateway(config.gateway, options, signal) },
    { title: "Storage", run: async () => checkData(config.dataDir) },
    ...redis,
    ...(mcp.servers.length === 0 ? [] : [{ title: "Tools", run: () => checkMcp(mcp.servers) }]),
    { title: "Address", run: (signal) => checkAddress(config, findEventsAddress(config), signal) },
    ...createPlatformSections(config),
  ];
}

function describeRoles({ role }: Config): Finding[] {
  const inOrder = { ok: true, what: "Every variable is in order." };
  if (role === "all") return [inOrder];
  const [does, others] = role === "ingress" ? ["only hears the platforms", "worker"] : ["only answers", "ingress"];
  return [inOrder, { ok: true, what: `ROLE=${role} ${does}: it needs a ROLE=${others} on the same Redis.` }];
}

/** Prints each section as soon as it and those before it are done. Resolves to whether all is well. */
async function examine(sections: readonly Section[], report: ReportOptions): Promise<boolean> {
  const all: Finding[] = [];
  const running = sections.map((section) => examineOne(section));
  for (const [index, { title }] of sections.entries()) {
    for (const finding of (await running[index]) ?? []) {
      all.push(finding);
      print(formatFinding(title, finding, report));
    }
  }
  print(`\n${formatSummary(all, report)}`);
  return all.every(({ ok }) => ok);
}

async function examineOne({ run }: Section): Promise<Finding[]> {
  try {
    return await runWithin(SECTION_MS, run, new AbortController().signal);
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error);
    return [{ ok: false, what: `This could not be tried to its end: ${words}` }];
  }
}

/** Nothing else can be tried before these are gone. */
function printProblems({ problems }: ConfigError, report: ReportOptions): void {
  const findings = problems.map((what) => ({ ok: false, what }));
  for (const finding of findings) print(formatFinding("Configuration", finding, report));
  print(
    `\n${formatSummary(findings, report)} .env.example explains every variable; the rest is tried once they are right.`,
  );
}

function readMayChat(): boolean | undefined {
  try {
    const { values } = parseArgs({ options: { "no-chat": { type: "boolean" }, help: { type: "boolean" } } });
    return values.help === true ? undefined : values["no-chat"] !== true;
  } catch {
    return undefined;
  }
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function main(): Promise<boolean> {
  const mayChat = readMayChat();
  if (mayChat === undefined) {
    print(USAGE);
    return process.argv.includes("--help");
  }
  const hasColor = process.stdout.isTTY && process.stdout.hasColors(process.env);
  try {
    const config = readConfig(process.env);
    const { text } = createRedactor(secretsOf(config));
    return await examine(createSections(config, { mayChat }), { redact: text, hasColor });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    printProblems(error, { redact: createRedactor([]).text, hasColor });
    return false;
  }
}

const isWell = await main();
process.exit(isWell ? 0 : 1);
