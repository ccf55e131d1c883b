import { setTimeout as sleep } from "node:timers/promises";
import { createMcpServers, type McpServers } from "../../../src/mcp/servers.ts";
import { silent } from "../log.ts";
import { address, startCountingServer, toMcpConfig } from "../mcp-world.ts";
import { openLine } from "./line.ts";

/** A call takes so long, so that processes die during some. */
const ACT_MS = 300;
/** A server's name and its tool's, as the model is told of them. */
const NAME = "shop";
const TOOL = `${NAME}__buy`;

/** A real tool server at which an answer buys what its question is named after. */
export interface Shop {
  /** As it stands in the configuration. */
  readonly name: string;
  readonly url: string;
  /** What was bought, oldest first. */
  readonly marks: readonly string[];
  close(): Promise<void>;
}

export async function openShop(): Promise<Shop> {
  const { url, marks, answerWith, close } = await startCountingServer();
  answerWith(() => sleep(ACT_MS, "bought"));
  return { name: NAME, url, marks, close };
}

/** What the model calls when it answers a question by a tool. */
export function toPurchase(question: string): { name: string; arguments: object } {
  return { name: TOOL, arguments: { note: question } };
}

/** One life of a process that may buy there. */
export interface Visit extends Pick<McpServers, "toolsOf" | "close"> {
  /** From here on it buys nothing: the process is dead. */
  cut(): void;
}

export async function visitShop({ name, url }: Shop): Promise<Visit> {
  const { origin, pathname } = new URL(url);
  const line = await openLine(origin);
  const servers = createMcpServers(
    [toMcpConfig(name, address(`${line.origin}${pathname}`), { approve: "never" })],
    silent,
  );
  await servers.tried();
  return {
    toolsOf: servers.toolsOf,
    cut: line.cut,
    async close() {
      await servers.close();
      await line.close();
    },
  };
}
