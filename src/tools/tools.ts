import { createCurrentTime } from "./current-time.ts";
import { createFetchUrl } from "./fetch-url.ts";
import { createReadFile } from "./read-file.ts";
import { createReadThread } from "./read-thread.ts";
import { createSearchHistory } from "./search-history.ts";
import { createSearchTool } from "./search-messages.ts";
import type { Tool, ToolDeps } from "./tool.ts";

/**
 * The built-in tools, except the image tool in `imagine/`. A function returns undefined if its tool is not configured.
 */
const TOOLS: ReadonlyArray<(deps: ToolDeps) => Tool | undefined> = [
  createCurrentTime,
  createSearchHistory,
  createSearchTool,
  createReadThread,
  createReadFile,
  createFetchUrl,
];

export function createTools(deps: ToolDeps): Tool[] {
  return TOOLS.flatMap((create) => create(deps) ?? []);
}
