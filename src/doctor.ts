/** `npm run doctor`: checks everything that the service needs, and says in plain words what is wrong. */
import { parseArgs } from "node:util";
import { ConfigError, readConfig } from "./config/config.ts";
import { secretsOf, tokenForms } from "./config/summary.ts";
import { formatFinding, formatSummary, type ReportOptions, type Section } from "./doctor/report.ts";
import { createSections, examineSection } from "./doctor/sections.ts";
import { createRedactor } from "./log/redact.ts";
import { PLATFORMS } from "./platforms.ts";
import type { Finding } from "./port/finding.ts";
import { loadModules } from "./port/module.ts";

const USAGE = `Usage: npm run doctor [-- --no-chat]

Checks everything in the configuration: the gateway, the storage, the addresses and the platforms. Writes nothing into any
conversation. Exits with 0 if everything works, otherwise with 1.

  --no-chat   do not ask the model a question, which costs a few tokens`;

/**
 * Prints the sections in order, each as soon as its checks have finished. Resolves to true if every finding is fine.
 */
async function examine(sections: readonly Section[], report: ReportOptions): Promise<boolean> {
  const all: Finding[] = [];
  const running = sections.map((section) => examineSection(section));
  for (const [index, { title }] of sections.entries()) {
    for (const finding of (await running[index]) ?? []) {
      all.push(finding);
      print(formatFinding(title, finding, report));
    }
  }
  print(`\n${formatSummary(all, report)}`);
  return all.every(({ ok }) => ok);
}

/** Prints only the configuration's mistakes, because nothing else can be checked before they are fixed. */
function printProblems({ problems }: ConfigError, report: ReportOptions): void {
  const findings = problems.map((what) => ({ ok: false, what }));
  for (const finding of findings) print(formatFinding("Configuration", finding, report));
  print(
    `\n${formatSummary(findings, report)} .env.example explains every variable; everything else is checked once they are right.`,
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
  const modules = await loadModules(PLATFORMS);
  try {
    const config = readConfig(process.env, modules);
    const { text } = createRedactor(secretsOf(config), tokenForms(modules));
    return await examine(createSections(config, { mayChat }), { redact: text, hasColor });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    printProblems(error, { redact: createRedactor([], tokenForms(modules)).text, hasColor });
    return false;
  }
}

const isWell = await main();
process.exit(isWell ? 0 : 1);
