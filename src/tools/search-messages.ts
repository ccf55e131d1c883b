import { z } from "zod";
import { SearchProblem } from "../port/errors.ts";
import { describeForModel } from "../search/describe.ts";
import { createSearchMessages, type SearchMessages } from "../search/search.ts";
import { defineTool, type Tool, type ToolDeps, ToolError } from "./tool.ts";

const schema = z.object({
  words: z.string().min(1).max(500).describe("Words that the messages contain, in their own language"),
  limit: z.int().min(1).max(20).default(10).describe("Maximum number of messages to return"),
});

export function createSearchTool(deps: ToolDeps): Tool {
  return toSearchTool(createSearchMessages(deps));
}

/** Lets the model search the platform's messages. It finds only messages that every reader of the answer can open. */
export function toSearchTool(search: SearchMessages): Tool {
  return defineTool({
    name: "search_messages",
    description:
      "Searches the messages of all channels that the asker, and others who read your answer, can open. Use it when the answer may have been written in another channel.",
    schema,
    timeoutMs: 30_000,
    isFleeting: true,
    async run({ words, limit }, { turn, onFound }, signal) {
      if (turn === undefined) throw new ToolError("Nothing can be searched here.");
      try {
        const found = await search(words, limit, turn, signal);
        onFound?.({
          hits: found.hits.map(({ placeId, link }) => ({ placeId, link })),
          withheld: found.withheld,
        });
        return describeForModel(found);
      } catch (error) {
        if (error instanceof SearchProblem) throw new ToolError(`${error.message} Say so.`);
        throw error;
      }
    },
    describeCall: ({ words }) => `searching messages for "${words}"`,
  });
}
