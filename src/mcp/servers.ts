import { isDeepStrictEqual } from "node:util";
import type { Logger } from "pino";
import type { McpServerConfig } from "../config/mcp-servers.ts";
import type { ChatMessage } from "../gateway/chunks.ts";
import type { ReplyAddress } from "../port/events.ts";
import type { Tool } from "../tools/tool.ts";
import { type ConnectionOptions, connectTo, type McpConnection, type ServerState } from "./connection.ts";
import { describePrompt, readPrompt, readPromptCall, toPromptOffer } from "./prompts.ts";
import { toTools } from "./tools.ts";

type Place = Pick<ReplyAddress, "platform" | "channelId" | "threadId">;

export interface ServerReport {
  name: string;
  state: ServerState;
  problem: string | undefined;
  tools: readonly Pick<Tool, "name" | "acts" | "approval">[];
  /** The prompts, as people type them. */
  prompts: readonly string[];
}

export interface McpServers {
  /** Returns the tools that the model can use in a channel, without the tools of the servers in `off`. */
  toolsOf(place: Place, off?: readonly string[]): readonly Tool[];
  /** Reports the servers of a channel, or all servers. */
  report(place?: Place): ServerReport[];
  /** Like `readPrompt`, but resolves to undefined if the message names no server of the channel. */
  readPrompt(place: Place, message: string, off: readonly string[], signal: AbortSignal): Promise<Prompted>;
  /** Applies a changed configuration. Unchanged servers keep running. */
  update(servers: readonly McpServerConfig[]): void;
  /**
   * Resolves when each server of the channel (or of all channels) is ready or has failed once. Skips the servers in
   * `off`.
   */
  tried(place?: Place, off?: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

type Prompted = ChatMessage[] | string | undefined;

interface Member {
  connection: McpConnection;
  tools: readonly Tool[];
}

export function createMcpServers(
  servers: readonly McpServerConfig[],
  log: Logger,
  options: ConnectionOptions = {},
): McpServers {
  let members: readonly Member[] = [];
  const leaving = new Set<Promise<void>>();

  function join(config: McpServerConfig): Member {
    const connection = connectTo(config, () => void (member.tools = toTools(connection)), log, options);
    const member: Member = { connection, tools: [] };
    return member;
  }

  function leave({ connection }: Member): void {
    const left = connection.close().finally(() => leaving.delete(left));
    leaving.add(left);
  }

  function update(wanted: readonly McpServerConfig[]): void {
    const before = members;
    members = wanted.map((config) => {
      return before.find(({ connection }) => isDeepStrictEqual(connection.config, config)) ?? join(config);
    });
    for (const member of before) if (!members.includes(member)) leave(member);
  }

  const at = (place?: Place, off: readonly string[] = []) =>
    members.filter(({ connection: { config } }) => {
      return (place === undefined || isOffered(config, place)) && !off.includes(config.name);
    });

  update(servers);

  return {
    toolsOf: (place, off) => at(place, off).flatMap(({ tools }) => tools),
    report: (place) =>
      at(place).map(({ connection: { config, state, problem, offer }, tools }) => ({
        name: config.name,
        state,
        problem,
        tools,
        prompts: offer.prompts.map((prompt) => describePrompt(config.name, toPromptOffer(prompt))),
      })),
    async readPrompt(place, message, off, signal) {
      const call = readPromptCall(message);
      const name = call?.server.toLowerCase();
      const member = at(place, off).find(({ connection }) => connection.config.name.toLowerCase() === name);
      return call && member && readPrompt(member.connection, call, signal);
    },
    update,
    tried: async (place, off) => void (await Promise.all(at(place, off).map(({ connection }) => connection.tried))),
    async close() {
      for (const member of members) leave(member);
      members = [];
      await Promise.all(leaving);
    },
  };
}

/** True if the server is available in this channel or in the channel of this thread. */
function isOffered({ channels }: McpServerConfig, { platform, channelId, threadId }: Place): boolean {
  if (channels === undefined) return true;
  return [platform, `${platform}:${channelId}`, `${platform}:${threadId ?? channelId}`].some((place) =>
    channels.includes(place),
  );
}
