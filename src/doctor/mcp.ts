import { pino } from "pino";
import { waitAtMost } from "../concurrency/deadlines.ts";
import type { McpServerConfig, McpSettings } from "../config/mcp-servers.ts";
import { createMcpServers, type ServerReport } from "../mcp/servers.ts";
import type { Finding } from "../port/finding.ts";

const MAX_NAMES = 12;

/** Maximum time for a server to connect and list its tools. The doctor's own timeout for all servers must be longer. */
const CONNECT_MS = 40_000;
const LISTING_MS = 10_000;

interface McpCheck extends Omit<McpSettings, "problems"> {
  path: string;
}

/** Connects to each tool server once. Reports its tools, or why the configuration skips it. Calls no tools. */
export async function checkMcp(
  { path, servers: configs, refused }: McpCheck,
  connectMs = CONNECT_MS,
): Promise<Finding[]> {
  const servers = createMcpServers(configs, pino({ level: "silent" }), { connectMs });
  const fix = `Check its entry in ${path}.`;
  try {
    await waitAtMost(servers.tried(), connectMs + LISTING_MS);
    const leftOut = refused.map((problem) => ({ ok: false, what: `Left out: ${problem}.`, fix }));
    const found = servers.report().map((report) => {
      return toFinding(report, isFetched(configs.find(({ name }) => name === report.name)) ? `${fix} ${INSTALL}` : fix);
    });
    return [...leftOut, ...found];
  } finally {
    await servers.close();
  }
}

const INSTALL = "npx fetches the program at every start: install it and start it with node (docs/mcp.md).";

function isFetched(config: McpServerConfig | undefined): boolean {
  return config?.transport.type === "stdio" && /(?:^|[\\/])npx(?:\.cmd)?$/.test(config.transport.command);
}

function toFinding({ name, state, problem, tools }: ServerReport, fix: string): Finding {
  if (state === "connecting") return { ok: false, what: `${name} did not list its tools in time.`, fix };
  if (state === "failed") return { ok: false, what: `${name} cannot be reached: ${problem}.`, fix };
  if (tools.length === 0) {
    return { ok: false, what: `${name} answers but offers no tools.`, fix: "Check tools.allow and tools.deny." };
  }
  const names = tools.slice(0, MAX_NAMES).map((tool) => tool.name.slice(name.length + 2));
  const more = tools.length > names.length ? ` and ${tools.length - names.length} more` : "";
  const asked = tools.filter(({ approval }) => approval !== undefined).length;
  return {
    ok: true,
    what: `${name} answers, with ${tools.length} tools (${names.join(", ")}${more}); people are asked before ${asked} of them.`,
  };
}
