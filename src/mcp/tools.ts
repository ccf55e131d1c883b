import type { Tool as ListedTool } from "@modelcontextprotocol/client";
import { z } from "zod";
import type { ImagePart } from "../gateway/chunks.ts";
import { fitPicture } from "../media/picture.ts";
import { sniffImage } from "../media/sniff.ts";
import { truncate } from "../text/truncate.ts";
import { defineTool, type Tool, type ToolContext, ToolError } from "../tools/tool.ts";
import type { McpConnection, OnProgress } from "./connection.ts";
import { toToolNames } from "./names.ts";
import { describeResource, describeResult, type RawPicture, toImagePart } from "./result.ts";
import { cleanSchema, toCheck } from "./schema.ts";

/** Maximum number of tools per server. From a longer list, `tools.allow` can choose. */
const MAX_TOOLS = 128;
const MAX_DESCRIPTION_CHARS = 1_000;
const MAX_LISTED_RESOURCES = 100;
/** Timeout for preparing a result's images after the call. */
const PICTURES_MS = 45_000;
const PICTURE_LIMITS = { maxPixels: 50_000_000, maxSide: 1_568, maxSentBytes: 1_000_000 };
const RESOURCES = "resources";

/** Turns a server's tools and resources into tools for the model, as the configuration permits. */
export function toTools(connection: McpConnection): Tool[] {
  const { config, offer } = connection;
  const { allow, deny } = config;
  const isOffered = (name: string) => (allow === undefined || allow.includes(name)) && !deny.includes(name);
  const byName = new Map(offer.tools.filter(({ name }) => isOffered(name)).map((tool) => [tool.name, tool]));
  const listed = [...byName.values()].slice(0, MAX_TOOLS);
  const names = toToolNames(
    config.name,
    listed.map(({ name }) => name),
  );
  const tools = listed.map((tool) => toTool(connection, tool, names.get(tool.name) ?? ""));
  const reads = offer.hasResources && isOffered(RESOURCES) && !byName.has(RESOURCES);
  return reads ? [...tools, toResourceTool(connection)] : tools;
}

function toTool(connection: McpConnection, listed: ListedTool, name: string): Tool {
  const { approve, timeoutMs, name: server } = connection.config;
  const { annotations = {}, description = "", inputSchema } = listed;
  const reads = annotations.readOnlyHint === true;
  const title = annotations.title ?? listed.title ?? listed.name;
  const parameters = cleanSchema(inputSchema);
  let schema: z.ZodType | undefined;
  const isAsked = approve === "always" || (approve === "acting" && !reads);
  return {
    name,
    description: truncate(`(From the server "${server}") ${description.toWellFormed()}`, MAX_DESCRIPTION_CHARS),
    parameters,
    // Created when first used, because most tools are never called.
    get schema() {
      return (schema ??= toCheck(parameters));
    },
    // Longer than the connection's own timeouts for the call and for the wait before the call.
    timeoutMs: 2 * timeoutMs + PICTURES_MS + 5_000,
    acts: !reads && annotations.idempotentHint !== true,
    ...(isAsked && { approval: { server } }),
    async run(args, context, signal) {
      const onProgress = toProgress(title, context);
      const given = args as Record<string, unknown>;
      const result = await connection.callTool(listed, given, context.conversationId, onProgress, signal);
      const { text, pictures, sources } = describeResult(server, result);
      if (result.isError === true) throw new ToolError(text);
      return { text, pictures: await fitPictures(pictures, `mcp:${server}`, signal), sources };
    },
    describeCall: () => `using ${title} of ${server}`,
  };
}

function toProgress(title: string, { onProgress }: ToolContext): OnProgress {
  return ({ progress, total, message }) => {
    const share = total === undefined || !(total > 0) ? "" : `${Math.round((100 * progress) / total)} %`;
    onProgress?.(`using ${title}: ${[share, message].filter(Boolean).join(", ") || progress}`);
  };
}

/** Returns the images that can be decoded, in order. They pass the same checks as people's images. */
async function fitPictures(pictures: readonly RawPicture[], owner: string, signal: AbortSignal): Promise<ImagePart[]> {
  const bound = AbortSignal.any([signal, AbortSignal.timeout(PICTURES_MS)]);
  const parts: ImagePart[] = [];
  for (const { data } of pictures) {
    try {
      const bytes = Buffer.from(data, "base64");
      const mimeType = await sniffImage(bytes);
      if (mimeType === undefined) continue;
      const fitted = await fitPicture(bytes, mimeType, PICTURE_LIMITS, owner, bound);
      if (!("problem" in fitted)) parts.push(toImagePart(fitted.mimeType, fitted.bytes));
    } catch {
      // The tool has run, so its call succeeds even if an image cannot be used.
      signal.throwIfAborted();
    }
  }
  return parts;
}

const resourceSchema = z.object({
  uri: z.string().max(2_000).optional().describe("The URI of a resource; omit it to list them."),
});

function toResourceTool(connection: McpConnection): Tool {
  const { name: server, timeoutMs } = connection.config;
  return defineTool({
    name: `${server}__${RESOURCES}`,
    description: `(From the server "${server}") Lists the server's resources, or reads one by its URI.`,
    schema: resourceSchema,
    timeoutMs: timeoutMs + 5_000,
    async run({ uri }, _, signal) {
      if (uri !== undefined) return describeResource(server, await connection.readResource(uri, signal));
      const resources = await connection.listResources(signal);
      const lines = resources.slice(0, MAX_LISTED_RESOURCES).map(({ uri, name, description = "" }) => {
        return `- ${uri} (${name}) ${truncate(description, 200)}`;
      });
      if (resources.length > lines.length) lines.push(`[${resources.length - lines.length} more are left out]`);
      return describeResult(server, { content: [{ type: "text", text: lines.join("\n") }] }).text;
    },
    describeCall: ({ uri }) => (uri === undefined ? `listing the resources of ${server}` : `reading ${uri}`),
  });
}
