import { McpServer } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

/** Runs an MCP server with the given number of tools. */
const server = new McpServer({ name: "bench", version: "1.0.0" });
const inputSchema = z.object({
  project: z.string().describe("Key of the project"),
  query: z.string().describe("Search words").optional(),
  state: z.enum(["open", "closed", "all"]).optional(),
  limit: z.int().min(1).max(100).optional(),
});
for (let index = 0; index < Number(process.argv[2]); index++) {
  const description = `Looks for issue number ${index} of a project, with what was said about it. Use it when somebody asks.`;
  server.registerTool(`find_issue_${index}`, { description, inputSchema }, async () => ({ content: [] }));
}
await server.connect(new StdioServerTransport());
