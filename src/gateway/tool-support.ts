import type { Logger } from "pino";
import type { Gateway } from "./client.ts";
import { type OptionalPart, withOptionalPart } from "./optional-part.ts";

const TOOLS: OptionalPart = {
  isIn: ({ tools }) => tools !== undefined,
  without: ({ tools: _tools, tool_choice: _choice, ...plain }) => plain,
  param: /^(tools|tool_choice|functions)$/,
  code: /(tools?|function_calling)_not_supported|unsupported_tools?\b/i,
  message: /not support (tools?|tool use|tool calling|function calling|functions)\b|found that support tool use/i,
  notice: "the model takes no tools and answers without",
};

/** A gateway that lets models answer which take no tools: without them. */
export function withOptionalTools(gateway: Gateway, log: Logger): Gateway {
  return withOptionalPart(gateway, TOOLS, log);
}
