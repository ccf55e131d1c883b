import type { Logger } from "pino";
import type { McpServerConfig, McpSettings } from "../config/mcp-servers.ts";
import { createMcpServers, type McpServers } from "../mcp/servers.ts";
import type { TokenStore } from "../mcp/tokens.ts";
import { followFile } from "./followed-file.ts";

export interface McpFileOptions {
  path: string;
  /** As the file named them at the start. */
  servers: readonly McpServerConfig[];
  /** Reads the file anew. */
  read(): McpSettings;
  /** Keeps what authorization servers give out; absent: in memory only. */
  tokens?: TokenStore | undefined;
  log: Logger;
  lookMs?: number;
}

/** The tool servers that a file names, and follows what becomes of it. */
export function openMcpServers({ servers, tokens, log, ...file }: McpFileOptions): McpServers {
  const mcp = createMcpServers(servers, log, tokens);
  const unfollow = followFile({ ...file, variable: "MCP_CONFIG", log, onChange: ({ servers }) => mcp.update(servers) });
  return {
    ...mcp,
    close() {
      unfollow();
      return mcp.close();
    },
  };
}
