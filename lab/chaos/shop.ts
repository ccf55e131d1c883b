import { setTimeout as sleep } from "node:timers/promises";
import { startCountingServer } from "../support/mcp-world.ts";

/** Each call takes this long, so that some processes die during one. */
const ACT_MS = 300;
const NAME = "shop";
const TOOL = `${NAME}__buy`;

/** A real MCP server. To answer a question, the model buys an item that has the question's name. */
export interface Shop {
  readonly name: string;
  readonly url: string;
  /** Names of the bought items, oldest first. */
  readonly marks: readonly string[];
  close(): Promise<void>;
}

export async function openShop(): Promise<Shop> {
  const { url, marks, answerWith, close } = await startCountingServer();
  answerWith(() => sleep(ACT_MS, "bought"));
  return { name: NAME, url, marks, close };
}

/** Returns the tool call with which the model answers a question. */
export function toPurchase(question: string): { name: string; arguments: object } {
  return { name: TOOL, arguments: { note: question } };
}
