import { isDeepStrictEqual } from "node:util";
import type { Logger } from "pino";
import type { McpServerConfig } from "../config/mcp-servers.ts";
import type { ChatMessage } from "../gateway/chunks.ts";
import type { ReplyAddress } from "../port/events.ts";
import type { Tool } from "../tools/tool.ts";
import { connectTo, type McpConnection, type ServerState } from "./connection.ts";
import { describePrompt, readPrompt, readPromptCall, toPromptOffer } from "./prompts.ts";
import type { TokenStore } from "./tokens.ts";
import { toTools } from "./tools.ts";

type Place = Pick<ReplyAddress, "platform" | "channelId" | "threadId">;

export interface ServerReport {
  name: string;
  state: ServerState;
  problem: string | undefined;
  tools: readonly Pick<Tool, "name" | "acts" | "approval">[];
  /** As people write them. */
  prompts: readonly string[];
}

/** The servers of the configuration, each kept connected. */
export interface McpServers {
  /** The tools that are offered in a place, without those of servers that are `off` there. */
  toolsOf(place: Place, off?: readonly string[]): readonly Tool[];
  /** The servers of a place, or all of them. */
  report(place?: Place): ServerReport[];
  /** Resolves as `readPrompt`, and to undefined for a message that names no server that is offered there. */
  readPrompt(place: Place, message: string, off: readonly string[], signal: AbortSignal): Promise<Prompted>;
  /** Takes up another configuration: what is as before goes on. */
  update(servers: readonly McpServerConfig[]): void;
  /** Resolves when each server, or each of a place without those that are `off`, is ready or was not reached once. */
  tried(place?: Place, off?: readonly string[]): Promise<void>;
  /** Ends all of them, and their programs. */
  close(): Promise<void>;
}

type Prompted = ChatMessage[] | string | undefined;

interface Member {
  connection: McpConnection;
  tools: readonly Tool[];
}

/** `tokens` keeps what authorization servers give out; without it each connection asks for its own. */
export function createMcpServers(servers: readonly McpServerConfig[], log: Logger, tokens?: TokenStore): McpServers {
  let members: readonly Member[] = [];
  const leaving = new Set<Promise<void>>();

  function join(config: McpServerConfig): Member {
    const connection = connectTo(config, () => void (member.tools = toTools(connection)), log, tokens);
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

/** A thread counts as the channel that it is in. */
function isOffered({ channels }: McpServerConfig, { platform, channelId, threadId }: Place): boolean {
  if (channels === undefined) return true;
  return [platform, `${platform}:${channelId}`, `${platform}:${threadId ?? channelId}`].some((place) =>
    channels.includes(place),
  );
}
