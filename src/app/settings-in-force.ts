import { stringify } from "yaml";
import type { SettingsPart } from "../admin/page/wire.ts";
import type { Config } from "../config/config.ts";
import type { McpServerConfig } from "../config/mcp-servers.ts";
import type { Policy } from "../config/policy/policy-file.ts";
import { describeConfig } from "../config/summary.ts";
import type { Audit, AuditEntry } from "../policy/audit.ts";
import type { ChatRules } from "../policy/chat-rules.ts";
import { describeRule } from "../policy/rules.ts";
import { describeOptions } from "../settings/answer-options.ts";
import type { ChannelInForce, Settings } from "../settings/settings.ts";
import type { Engine } from "./engine.ts";

const MAX_CHANGES = 100;

export interface InForceDeps {
  config: Config;
  policy(): Policy;
  /** Sentences about changes of the policy file that an administrator should know of. */
  policyWarnings(): readonly string[];
  /** The servers that the file names by now. */
  toolServers(): readonly McpServerConfig[];
  /** How they are doing in this process. One that runs no turns has none. */
  toolReports: Engine["toolReports"];
  settings: Pick<Settings, "list">;
  chatRules: Pick<ChatRules, "read">;
  audit: Pick<Audit, "read">;
}

/** Everything that is in force, for people to read. Rejects when the store does not answer. */
export async function readInForce({
  config,
  policy,
  policyWarnings,
  toolServers,
  ...deps
}: InForceDeps): Promise<SettingsPart[]> {
  const [channels, chatRules, changes] = await Promise.all([
    deps.settings.list(),
    deps.chatRules.read(),
    deps.audit.read(MAX_CHANGES),
  ]);
  const { access = {}, quotas, prices, models } = policy();
  const rules = [
    ...policyWarnings().map((value) => ({ name: "Warning", value })),
    ...chatRules.map(({ id, rule }) => ({ name: `Rule ${id} of the chat`, value: describeRule(rule) })),
    ...(access.rules ?? []).map((rule, index) => ({
      name: `Rule ${index + 1} of the file`,
      value: describeRule(rule),
    })),
    ...(access.admins ?? []).map((who) => ({ name: "Admin", value: who })),
  ];
  return [
    {
      title: "Configuration",
      about: "As the process that shows this page was started.",
      rows: describeConfig(config).map(splitLine),
    },
    {
      title: "Channels",
      about: channels.length === 0 ? "Every channel is as configured." : "Only what differs from the configuration.",
      rows: channels.map(describeChannel),
    },
    {
      title: "Who may do what",
      about: rules.length === 0 ? "No rules: everybody may use everything." : "The first rule that matches decides.",
      rows: rules,
    },
    toSection("Quotas", quotas, "There are none."),
    toSection("Prices", prices, "There are none, so what models cost is only known where the gateway tells it."),
    toSection("Models", models, "No rules: the models are those of the gateway."),
    {
      title: "Tool servers",
      ...(toolServers().length === 0 && { about: "There are none." }),
      rows: toolServers().map((config) => describeServer(config, deps.toolReports())),
    },
    {
      title: "Changes",
      about: changes.length === 0 ? "Nobody has changed anything yet." : `The newest ${MAX_CHANGES} at most.`,
      rows: changes.map(describeChange),
    },
  ];
}

function splitLine(line: string): { name: string; value: string } {
  const [name = "", ...rest] = line.split(": ");
  return { name, value: rest.join(": ") };
}

function describeChannel({
  platform,
  channelId,
  workspaceId,
  model,
  persona,
  prompts,
  options,
  serversOff,
  listens,
}: ChannelInForce) {
  const parts = [
    model && `Model: ${model}`,
    options && describeOptions(options) !== "" && `Options: ${describeOptions(options)}`,
    persona && `Persona: ${persona}`,
    serversOff && `Tool servers switched off: ${serversOff.join(", ")}`,
    prompts && `Suggests: ${prompts.join(" | ")}`,
    listens && "Answers everything that is said to nobody else",
  ];
  const place = [platform, workspaceId, channelId].filter(Boolean).join(" · ");
  return { name: place, value: parts.filter(Boolean).join("\n") };
}

/** A section of the policy file as it stands there. */
function toSection(title: string, section: unknown, none: string): SettingsPart {
  if (section === undefined) return { title, about: none, rows: [] };
  return { title, rows: [{ name: "Policy file", value: stringify(section).trim() }] };
}

/** Leaves the arguments of a program out, which may hold secrets. */
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

function describeChange({ at, name, platform, channelId, what, before, after }: AuditEntry) {
  const who = name === "" ? "somebody who was forgotten" : name;
  const place = channelId === undefined ? platform : `${platform} · ${channelId}`;
  const change = before === undefined ? (after ?? "as configured") : `${before} → ${after ?? "as configured"}`;
  return {
    name: new Date(at).toISOString().slice(0, 16).replace("T", " "),
    value: `${who} at ${place}: ${what}: ${change}`,
  };
}
