import { pino } from "pino";
import type { McpSettings } from "../config/mcp-servers.ts";
import { createMcpServers, type ServerReport } from "../mcp/servers.ts";
import type { Finding } from "../port/finding.ts";

const MAX_NAMES = 12;

const FIX = "Check its entry in MCP_CONFIG.";

/** Connects to every tool server once, and tells what each offers, and of those that are left out why. Calls none of their tools. */
export async function checkMcp({ servers: configs, refused }: Omit<McpSettings, "problems">): Promise<Finding[]> {
  const servers = createMcpServers(configs, pino({ level: "silent" }));
  try {
    await servers.tried();
    const leftOut = refused.map((problem) => ({ ok: false, what: `Left out: ${problem}.`, fix: FIX }));
    return [...leftOut, ...servers.report().map(toFinding)];
  } finally {
    await servers.close();
  }
}

function toFinding({ name, state, problem, tools }: ServerReport): Finding {
  if (state !== "ready") {
    return { ok: false, what: `${name} cannot be reached: ${problem}.`, fix: FIX };
  }
  if (tools.length === 0) {
    return { ok: false, what: `${name} answers, and offers no tool.`, fix: "Check tools.allow and tools.deny." };
  }
  const names = tools.slice(0, MAX_NAMES).map((tool) => tool.name.slice(name.length + 2));
  const more = tools.length > names.length ? ` and ${tools.length - names.length} more` : "";
  const asked = tools.filter(({ approval }) => approval !== undefined).length;
  return {
    ok: true,
    what: `${name} answers, with ${tools.length} tools (${names.join(", ")}${more}); people are asked before ${asked} of them.`,
  };
}
