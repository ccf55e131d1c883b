import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { toPurchase } from "./shop.ts";

export type UpstreamWay =
  | "answer"
  | "no-done"
  | "odd-framing"
  | "json"
  | "tool"
  | "length"
  | "filter"
  | "cut"
  | "stall"
  | "comments"
  | "error"
  | "unfinished"
  | "garbage"
  | "huge"
  | "html"
  | "empty"
  | "rate-limited"
  | "rate-limited-long"
  | "500"
  | "503"
  | "reset";

/** Ways that send the whole text and end properly. */
export const COMPLETE: ReadonlySet<UpstreamWay> = new Set(["answer", "no-done", "odd-framing", "json"]);
/** Ways that send nothing of the answer, after which the client retries by itself. */
const REPEATED: ReadonlySet<UpstreamWay> = new Set(["rate-limited", "500", "503", "reset"]);
/** Ways that refuse the request, so that it costs nothing. */
export const REFUSED: ReadonlySet<UpstreamWay> = new Set([...REPEATED, "rate-limited-long"]);

export const RETRY_AFTER_MS = 1_000;
/** Longer than the client waits. */
const LONG_RETRY_AFTER_S = 5;
const HUGE_CHARS = 2_097_152;
const PIECES = 24;
const FINISHES: Partial<Record<UpstreamWay, string>> = { length: "length", filter: "content_filter" };

export interface Speech {
  response: ServerResponse;
  way: UpstreamWay;
  text: string;
  /** Time between two chunks. */
  paceMs: number;
  /** Name of the question for which the model calls a tool. */
  name: string;
  /** True if the request contains the result of this answer's tool call. */
  hasResult: boolean;
}

const OTHER_BODIES: Partial<Record<UpstreamWay, readonly [status: number, type: string, body: string]>> = {
  html: [200, "text/html", "<html><body>Welcome to the portal</body></html>"],
  empty: [200, "text/event-stream", ""],
  "500": [500, "application/json", refusal("server_error")],
  "503": [503, "application/json", refusal("server_error")],
  "rate-limited": [429, "application/json", refusal("rate_limit_error")],
  "rate-limited-long": [429, "application/json", refusal("rate_limit_error")],
};

/** Answers a request in the given way. Resolves to the text that was sent. */
export async function speak(speech: Speech): Promise<string> {
  const { response, way, text } = speech;
  const other = OTHER_BODIES[way];
  if (way === "rate-limited") response.setHeader("retry-after", RETRY_AFTER_MS / 1_000);
  if (way === "rate-limited-long") response.setHeader("retry-after", LONG_RETRY_AFTER_S);
  if (other !== undefined) {
    whole(response, ...other);
    return "";
  }
  if (way === "reset") {
    response.socket?.destroy();
    return "";
  }
  if (way === "json") {
    whole(response, 200, "application/json", JSON.stringify(completion(text)));
    return text;
  }
  return stream(speech);
}

async function stream(speech: Speech): Promise<string> {
  const { response, way, text, name, hasResult } = speech;
  const eol = way === "odd-framing" ? "\r\n" : "\n";
  const send = (data: unknown) => response.write(`data: ${JSON.stringify(data)}${eol}${eol}`);
  response.writeHead(200, { "content-type": "text/event-stream" });
  send(chunk({ role: "assistant", content: "" }));
  if (way === "tool" && !hasResult) {
    const tool = toPurchase(name);
    const call = { index: 0, id: "call_1", type: "function", function: { name: tool.name, arguments: "" } };
    send(chunk({ tool_calls: [call] }));
    send(chunk({ tool_calls: [{ index: 0, function: { arguments: JSON.stringify(tool.arguments) } }] }));
    send(chunk({}, "tool_calls"));
    response.end("data: [DONE]\n\n");
    return "";
  }
  const end = isPartial(way) ? Math.ceil(text.length / 2) : text.length;
  const sent = await sendText(speech, end, send);
  if (response.destroyed) return sent;
  if (way === "cut") response.socket?.destroy();
  if (way === "comments") await keepAlive(response);
  // During a stall, the connection stays open.
  if (way === "stall" || response.destroyed) return sent;
  if (way === "error") send({ error: { type: "server_error", code: "overloaded", message: "upstream fell over" } });
  if (way === "garbage") response.write("data: {not json\n\n".repeat(12));
  if (way === "huge") response.write(`data: ${"x".repeat(HUGE_CHARS)}\n\n`);
  if (!isPartial(way)) {
    send(chunk({}, FINISHES[way] ?? "stop"));
    if (way !== "no-done") response.write("data: [DONE]\n\n");
  }
  response.end();
  return sent;
}

async function sendText(
  { response, way, text, paceMs }: Speech,
  end: number,
  send: (data: unknown) => void,
): Promise<string> {
  const step = Math.max(1, Math.ceil(text.length / PIECES));
  let sent = "";
  for (let at = 0; at < end && !response.destroyed; at += step) {
    const piece = text.slice(at, Math.min(end, at + step));
    send(chunk({ content: piece }));
    if (way === "odd-framing" && at === 0) response.write(": a comment\r\n\r\ndata: {broken\r\n\r\n");
    sent += piece;
    await sleep(paceMs);
  }
  return sent;
}

async function keepAlive(response: ServerResponse): Promise<void> {
  while (!response.destroyed) {
    response.write(": keep-alive\n\n");
    await sleep(100);
  }
}

function isPartial(way: UpstreamWay): boolean {
  return ["cut", "stall", "comments", "error", "unfinished", "garbage", "huge"].includes(way);
}

function whole(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { "content-type": type });
  response.end(body);
}

function refusal(type: string): string {
  return JSON.stringify({ error: { type, code: "some_code", message: "not at the moment", param: null } });
}

function chunk(delta: Record<string, unknown>, finish: string | null = null) {
  const choices = [{ index: 0, delta, finish_reason: finish }];
  return { id: "chatcmpl-1", object: "chat.completion.chunk", created: 0, model: "scripted", choices };
}

function completion(content: string) {
  const choices = [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }];
  return { id: "chatcmpl-1", object: "chat.completion", created: 0, model: "scripted", choices };
}
