import { setTimeout as sleep } from "node:timers/promises";
import { startCountingServer } from "../support/mcp-world.ts";

/** Each call takes this long, so that some processes die during a call. */
const ACT_MS = 300;
/** The names of the server and of its tool, as the model sees them. */
const NAME = "shop";
const TOOL = `${NAME}__buy`;

/** A real MCP server. To answer a question, the model buys an item with the same name as the question. */
export interface Shop {
  /** The server's name in the configuration. */
  readonly name: string;
  readonly url: string;
  /** The names of the purchases, oldest first. */
  readonly marks: readonly string[];
  close(): Promise<void>;
}

export async function openShop(): Promise<Shop> {
  const { url, marks, answerWith, close } = await startCountingServer();
  answerWith(() => sleep(ACT_MS, "bought"));
  return { name: NAME, url, marks, close };
}

/** The model answers a question with this tool call. */
export function toPurchase(question: string): { name: string; arguments: object } {
  return { name: TOOL, arguments: { note: question } };
}
