import { randomUUID } from "node:crypto";
import { createParser } from "eventsource-parser";
import type { MessageRow, Row } from "../../adapters/local/page/wire.ts";
import { createPatience } from "../../lab/support/patience.ts";

/** Acts as a browser does at the local page: sends messages, and follows the rows. */
export interface LocalClient {
  messages(): MessageRow[];
  /** Every state of every message, in the order in which they appeared. */
  states(id: number): string[];
  /** How often the server has sent a row with a number that it had sent before. */
  repeats(): number;
  send(text: string, options?: { chat?: string; fileIds?: string[]; nonce?: string | undefined }): Promise<number>;
  press(messageId: number, action: "stop" | "retry" | "approve"): Promise<void>;
  /**
   * Resolves when `holds` returns true for the messages. Checks it at every row. Rejects if no more rows arrive for
   * long.
   */
  until(holds: (messages: MessageRow[]) => boolean): Promise<MessageRow[]>;
  close(): void;
}

export const isBot = (message: MessageRow): boolean => message.isBot && !message.isDeleted;
export const isFinal = (message: MessageRow): boolean => isBot(message) && !message.isStreaming;

export async function connectLocal(url: string): Promise<LocalClient> {
  const rows = new Map<number, MessageRow>();
  const seen = new Map<number, string[]>();
  const watchers = new Set<() => void>();
  const abort = new AbortController();
  let lastSeq = 0;
  let repeats = 0;

  const response = await fetch(`${url}/local/events`, { signal: abort.signal });
  const connected = Promise.withResolvers<void>();
  const parser = createParser({
    onEvent({ data, id }) {
      connected.resolve();
      const row = JSON.parse(data) as Row | { type?: undefined } | null;
      if (row?.type === undefined || id === undefined) return;
      if (row.seq <= lastSeq) repeats += 1;
      lastSeq = Math.max(lastSeq, row.seq);
      if (row.type !== "message") return;
      rows.set(row.id, row);
      seen.set(row.id, [...(seen.get(row.id) ?? []), row.text]);
      for (const check of watchers) check();
    },
  });
  void follow(response, (text) => parser.feed(text)).catch(() => {});
  await connected.promise;

  async function post(path: string, body: unknown): Promise<Record<string, unknown>> {
    const answer = await fetch(`${url}/local${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", origin: url },
      body: JSON.stringify(body),
    });
    const json = (await answer.json()) as Record<string, unknown>;
    if (!answer.ok) throw new Error(`${answer.status}: ${JSON.stringify(json)}`);
    return json;
  }

  const messages = () => [...rows.values()].toSorted((a, b) => a.id - b.id);
  return {
    messages,
    states: (id) => seen.get(id) ?? [],
    repeats: () => repeats,
    async send(text, { chat: chatId = "test", fileIds = [], nonce = randomUUID() } = {}) {
      const body = { nonce, chatId, text, fileIds, isNewChat: true };
      return Number((await post("/messages", body))["id"]);
    },
    async press(messageId, action) {
      const turnId = rows.get(messageId)?.buttons.find((button) => button.action === action)?.turnId;
      await post(`/messages/${messageId}/action`, { nonce: randomUUID(), action, turnId });
    },
    until(holds) {
      const { promise, resolve, reject } = Promise.withResolvers<MessageRow[]>();
      const end = () => {
        patience.end();
        watchers.delete(check);
      };
      const patience = createPatience(() => {
        end();
        const shown = messages().map(({ id, text, isStreaming }) => ({ id, isStreaming, end: text.slice(-200) }));
        reject(new Error(`No more rows came, and these are not what was waited for: ${JSON.stringify(shown)}`));
      });
      const check = () => {
        const all = messages();
        patience.moved();
        if (!holds(all)) return;
        end();
        resolve(all);
      };
      watchers.add(check);
      check();
      return promise;
    },
    close: () => abort.abort(),
  };
}

async function follow(response: Response, onText: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  for await (const bytes of response.body ?? []) onText(decoder.decode(bytes, { stream: true }));
}
