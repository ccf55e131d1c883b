import type { Logger } from "pino";
import type { McpServerConfig, McpSettings } from "../config/mcp-servers.ts";
import { createMcpServers, type McpServers } from "../mcp/servers.ts";
import type { TokenStore } from "../mcp/tokens.ts";
import { followFile } from "./followed-file.ts";

export interface McpFileOptions {
  path: string;
  /** As the file named them at the start. */
  servers: readonly McpServerConfig[];
  /** Problems of the servers that were left out at the start. */
  refused: readonly string[];
  read(): McpSettings;
  /** Keeps what authorization servers give out; absent: in memory only. */
  tokens?: TokenStore | undefined;
  log: Logger;
}

/** The tool servers that a file names, and follows what becomes of it. */
export function openMcpServers({ servers, refused, tokens, log, ...file }: McpFileOptions): McpServers {
  if (refused.length > 0) log.error({ path: file.path, problems: refused }, "servers of MCP_CONFIG are left out");
  const mcp = createMcpServers(servers, log, tokens);
  const unfollow = followFile({
    ...file,
    variable: "MCP_CONFIG",
    read: () => toWhole(file.read()),
    onChange: ({ servers }) => mcp.update(servers),
    log,
  });
  return {
    ...mcp,
    close() {
      unfollow();
      return mcp.close();
    },
  };
}

/** A mistake in a changed file ends no running server. */
function toWhole({ servers, problems, refused }: McpSettings) {
  return { servers, problems: [...problems, ...refused] };
}
