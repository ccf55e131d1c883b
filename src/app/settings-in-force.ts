import { stringify } from "yaml";
import type { Names } from "../admin/names.ts";
import type { SettingsPart } from "../admin/page/wire.ts";
import type { Config } from "../config/config.ts";
import type { McpServerConfig } from "../config/mcp-servers.ts";
import { describeConfig } from "../config/summary.ts";
import type { AuditEntry } from "../policy/audit.ts";
import { describeRule } from "../policy/rules.ts";
import { describeStanding } from "../schedules/wording.ts";
import { describeSettings } from "../settings/list.ts";
import type { Engine } from "./engine.ts";

const MAX_CHANGES = 100;
/** Most schedules that the page lists. Each needs a look-up of its channel\'s name. */
const MAX_SCHEDULES = 100;

export interface InForceDeps extends Engine {
  config: Config;
  /** Sentences for administrators about changes of the policy file. */
  policyWarnings(): readonly string[];
  /** The servers that the file currently names. */
  toolServers(): readonly McpServerConfig[];
  names: Names;
}

/** Describes all current settings for the dashboard. Rejects if the store does not respond. */
export async function readInForce(deps: InForceDeps): Promise<SettingsPart[]> {
  const { config, policy, policyWarnings, toolServers } = deps;
  const [channels, chatRules, schedules, changes] = await Promise.all([
    deps.settings.list(),
    deps.chatRules.read(),
    deps.schedules.list(),
    deps.audit.read(MAX_CHANGES),
  ]);
  const { access = {}, quotas, prices, models } = policy();
  const rules = [
    ...policyWarnings().map((value) => ({ name: "Warning", value })),
    ...chatRules.map(({ id, rule }) => ({ name: `Rule ${id} set in chat`, value: describeRule(rule) })),
    ...(access.rules ?? []).map((rule, index) => ({
      name: `Rule ${index + 1} in the policy file`,
      value: describeRule(rule),
    })),
    ...(access.admins ?? []).map((who) => ({ name: "Admin", value: who })),
  ];
  return [
    {
      title: "Configuration",
      about: "The configuration of the process that serves this page.",
      rows: describeConfig(config).map(splitLine),
    },
    {
      title: "Channels",
      about:
        channels.length === 0 ? "Every channel uses the configuration." : "Only differences from the configuration.",
      rows: await Promise.all(
        channels.map(async (channel) => ({
          name: (await deps.names.place(channel)).text,
          value: describeSettings(channel).join("\n"),
        })),
      ),
    },
    {
      title: "Schedules",
      about: describeSchedules(schedules.length),
      rows: await Promise.all(
        schedules.slice(0, MAX_SCHEDULES).map(async (one) => ({
          name: (await deps.names.place(one.reply)).text,
          value: describeStanding(one, deps.now()),
        })),
      ),
    },
    {
      title: "Access rules",
      about: rules.length === 0 ? "No rules: everyone can use everything." : "The first rule that matches decides.",
      rows: rules,
    },
    toSection("Quotas", quotas, "None."),
    toSection("Prices", prices, "None, so a model's cost is known only if the gateway reports it."),
    toSection("Models", models, "No rules: all models of the gateway are offered."),
    {
      title: "Tool servers",
      ...(toolServers().length === 0 && { about: "None." }),
      rows: toolServers().map((config) => describeServer(config, deps.toolReports())),
    },
    {
      title: "Changes",
      about: changes.length === 0 ? "No changes yet." : `At most the ${MAX_CHANGES} most recent changes.`,
      rows: await Promise.all(changes.map((change) => describeChange(change, deps.names))),
    },
  ];
}

function describeSchedules(count: number): string {
  if (count === 0) return "None.";
  return count > MAX_SCHEDULES ? `The next ${MAX_SCHEDULES} of ${count}, sorted by next run.` : "Sorted by next run.";
}

function splitLine(line: string): { name: string; value: string } {
  const [name = "", ...rest] = line.split(": ");
  return { name, value: rest.join(": ") };
}

/** Describes a section of the policy file, with a row for each field. */
function toSection(title: string, section: object | undefined, none: string): SettingsPart {
  const rows = Object.entries(section ?? {}).map(([name, value]) => ({ name, value: stringify(value).trim() }));
  return { title, about: section === undefined ? none : "From the policy file.", rows };
}

/** Omits a program's arguments, because they can contain secrets. */
function describeServer(
  { name, transport, allow, deny, channels, approve }: McpServerConfig,
  reports: ReturnType<Engine["toolReports"]>,
) {
  const report = reports.find((one) => one.name === name);
  const state = report?.state === "ready" ? `ready, tools: ${report.tools.length}` : report?.problem;
  const where = transport.type === "stdio" ? `program ${transport.command}` : new URL(transport.url).origin;
  const tools = allow === undefined ? "all tools" : `tools ${allow.join(", ")}`;
  const but = deny.length === 0 ? "" : ` but ${deny.join(", ")}`;
  const places = channels === undefined ? "everywhere" : `in ${channels.join(", ")}`;
  const value = `${where}; ${tools}${but}, ${places}; asks before calls: ${approve}`;
  return { name, value: state === undefined ? value : `${value}\nNow: ${state}` };
}

async function describeChange(
  { at, name, platform, workspaceId, channelId, what, before, after }: AuditEntry,
  names: Names,
) {
  const who = name === "" ? "a person whose data was erased" : name;
  const where = { platform, channelId, ...(workspaceId !== undefined && { workspaceId }) };
  const place = channelId === undefined ? platform : (await names.place({ ...where, channelId })).text;
  const change = before === undefined ? (after ?? "as configured") : `${before} → ${after ?? "as configured"}`;
  return {
    name: new Date(at).toISOString().slice(0, 16).replace("T", " "),
    value: `${who} at ${place}: ${what}: ${change}`,
  };
}
