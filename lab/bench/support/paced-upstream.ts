import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import type { SandboxMessage } from "../../../src/sandbox/chat-request.ts";
import { readCutAnswer, withoutNames } from "../../../src/sandbox/conversation.ts";
import { type Arrivals, TOKEN_UNITS } from "../../pacing/scenarios.ts";

/** Tokens per sentence and per paragraph. */
const SENTENCE = 24;
const PARAGRAPH = 120;

/**
 * A gateway that sends its tokens at planned times. Each token is a separate word. It can continue an interrupted
 * answer.
 */
export interface PacedUpstream {
  url: string;
  /** When the answer to this question started, in Unix milliseconds. */
  startOf(question: string): number;
  /** When the answer last continued after an interruption, in Unix milliseconds; NaN if it was never interrupted. */
  continuedAt(question: string): number;
  /** When the first answer ended or was aborted, in Unix milliseconds; NaN before that. */
  endOf(question: string): number;
  close(): Promise<void>;
}

export function wordsOf(arrivals: Arrivals): string[] {
  return arrivals.map((_, index) => {
    const mark = (index + 1) % PARAGRAPH === 0 ? ".\n\n" : (index + 1) % SENTENCE === 0 ? ". " : " ";
    return index.toString(36).padStart(TOKEN_UNITS, "0").slice(mark.length) + mark;
  });
}

/** `plan` returns when each token of an answer is sent, in milliseconds from the answer's start. */
export async function startPacedUpstream(plan: (question: string) => Arrivals): Promise<PacedUpstream> {
  const [starts, continued, ends] = [new Map<string, number>(), new Map<string, number>(), new Map<string, number>()];

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { messages: asked } = JSON.parse(await text(request)) as { messages: SandboxMessage[] };
    const messages = withoutNames(asked);
    const interrupted = readCutAnswer(messages);
    const { content } = (interrupted?.before ?? messages).at(-1) ?? {};
    const question = typeof content === "string" ? content : JSON.stringify(content);
    const startMs = Date.now();
    (interrupted === undefined ? starts : continued).set(question, startMs);
    response.once("close", () => {
      if (!ends.has(question)) ends.set(question, Date.now());
    });
    const arrivals = plan(question);
    response.writeHead(200, { "content-type": "text/event-stream" });
    const whole = wordsOf(arrivals).join("");
    // All words have the same length.
    const words = (interrupted?.toRest(whole) ?? whole).match(new RegExp(`[^]{1,${TOKEN_UNITS}}`, "g")) ?? [];
    for (const [index, word] of words.entries()) {
      const waitMs = startMs + (arrivals[index] ?? 0) - Date.now();
      if (waitMs > 0) await sleep(waitMs);
      response.write(toEvent({ content: word }, null));
    }
    response.end(`${toEvent({}, "stop")}data: [DONE]\n\n`);
  }

  const server = createServer((request, response) => {
    respond(request, response).catch(() => response.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    startOf: (question) => starts.get(question) ?? Number.NaN,
    continuedAt: (question) => continued.get(question) ?? Number.NaN,
    endOf: (question) => ends.get(question) ?? Number.NaN,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function toEvent(delta: Record<string, unknown>, finish: string | null): string {
  const choices = [{ index: 0, delta, finish_reason: finish }];
  const chunk = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 0, model: "paced", choices };
  return `data: ${JSON.stringify(chunk)}\n\n`;
}
