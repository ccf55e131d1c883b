import { unwatchFile, watchFile } from "node:fs";
import type { Logger } from "pino";
import type { McpServerConfig, McpSettings } from "../config/mcp-servers.ts";
import { createMcpServers, type McpServers } from "../mcp/servers.ts";

/** How often the file of tool servers is looked at for changes. */
const LOOK_MS = 2_000;

export interface McpFileOptions {
  path: string;
  /** As the file named them at the start. */
  servers: readonly McpServerConfig[];
  /** Reads the file anew. */
  read(): McpSettings;
  log: Logger;
  lookMs?: number;
}

/** The tool servers that a file names, and follows what becomes of it: a file with problems changes nothing. */
export function openMcpServers({ path, servers, read, log, lookMs = LOOK_MS }: McpFileOptions): McpServers {
  const mcp = createMcpServers(servers, log);
  function takeUp(now: { mtimeMs: number }, before: { mtimeMs: number }): void {
    // Told once of a file that is not there, too.
    if (now.mtimeMs === before.mtimeMs) return;
    const { servers, problems } = read();
    if (problems.length > 0) {
      log.error({ path, problems }, "MCP_CONFIG has changed and has problems; the servers stay as they are");
      return;
    }
    log.info({ path, servers: servers.map(({ name }) => name) }, "MCP_CONFIG has changed and is taken up");
    mcp.update(servers);
  }
  watchFile(path, { persistent: false, interval: lookMs }, takeUp);
  return {
    ...mcp,
    close() {
      unwatchFile(path, takeUp);
      return mcp.close();
    },
  };
}
