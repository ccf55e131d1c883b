import type { Logger } from "pino";
import type { Gateway } from "./client.ts";
import { type OptionalPart, withOptionalPart } from "./optional-part.ts";

const TOOLS: OptionalPart = {
  isIn: ({ tools }) => tools !== undefined,
  without: ({ tools: _tools, tool_choice: _choice, ...plain }) => plain,
  param: /^(tools|tool_choice|functions)$/,
  code: /(tools?|function_calling)_not_supported|unsupported_tools?\b/i,
  message: new RegExp(
    [
      "(not|n't) support (tools?|tool use|tool calling|function calling|functions)\\b",
      "\\b(tools?|tool use|tool calling|function calling|functions)[`'\"]? (is|are) not (supported|enabled|available)",
      "found that support tool use",
      // What servers for open models say that were started without a parser of calls.
      "tool choice requires",
      "tools param requires",
      "argument supplied: tools",
    ].join("|"),
    "i",
  ),
  notice: "the model takes no tools and answers without",
};

/** A gateway that lets models answer which take no tools: without them. */
export function withOptionalTools(gateway: Gateway, log: Logger): Gateway {
  return withOptionalPart(gateway, TOOLS, log);
}
