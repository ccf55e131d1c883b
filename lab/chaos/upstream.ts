import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer, text } from "node:stream/consumers";
import { answerTo, namesIn, unedited } from "./answers.ts";
import { COMPLETE, speak, type UpstreamWay } from "./upstream-faults.ts";

export interface UpstreamRequest {
  names: string[];
  way: UpstreamWay;
  atMs: number;
  sent: string;
  /** True if the whole answer was sent with a proper end. */
  isComplete: boolean;
  /** True if the request contained a tool's result. */
  isSecond: boolean;
  /** The host under which the caller reached the upstream. */
  host: string;
  /** The messages before the last question, oldest first. */
  earlier: ReadonlyArray<{ role: string; text: string }>;
}

/**
 * The upstream's reactions to the requests about a question, one way per request. The last way also applies to all
 * further requests.
 */
export interface Script {
  ways: readonly UpstreamWay[];
  paceMs: number;
}

/** A gateway on a real socket, which answers each question by the question's script. */
export interface Upstream {
  url: string;
  script(name: string, script: Script): void;
  /** Returns all requests whose last question was this one, edited or not, oldest first. */
  requestsFor(name: string): readonly UpstreamRequest[];
  close(): Promise<void>;
}

export interface UpstreamOptions {
  /** Server and API key for all requests other than chat. */
  elsewhere?: { url: string; key: string };
}

interface ChatBody {
  messages: Array<{ role: string; content: unknown }>;
}

const PLAIN: Script = { ways: ["answer"], paceMs: 5 };

export async function openUpstream({ elsewhere }: UpstreamOptions = {}): Promise<Upstream> {
  const scripts = new Map<string, Script>();
  const requests = new Map<string, UpstreamRequest[]>();

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (elsewhere !== undefined && !isChat(request)) return pass(request, response, elsewhere);
    const { messages } = JSON.parse(await text(request)) as ChatBody;
    const truncated = readTruncated(messages);
    const lastUser = (truncated?.before ?? messages).findLastIndex(({ role }) => role === "user");
    const names = namesIn(textOf(messages[lastUser]?.content));
    const hasResult = messages.slice(lastUser).some(({ role }) => role === "tool");
    // Earlier questions without an answer can precede the current one.
    const key = unedited(names.at(-1) ?? "");
    const { ways, paceMs } = scripts.get(key) ?? PLAIN;
    const before = (requests.get(key) ?? []).filter((one) => !one.isSecond);
    // The request with the tool's result belongs to the same step.
    const way = hasResult ? "answer" : (ways[Math.min(before.length, ways.length - 1)] ?? "answer");
    const one: UpstreamRequest = {
      names,
      way,
      atMs: Date.now(),
      sent: "",
      isComplete: false,
      isSecond: hasResult,
      host: request.headers.host ?? "",
      earlier: messages.slice(0, lastUser).map(({ role, content }) => ({ role, text: textOf(content) })),
    };
    requests.set(key, [...(requests.get(key) ?? []), one]);
    const whole = answerTo(names);
    const from =
      truncated !== undefined && whole.startsWith(truncated.shownText)
        ? truncated.shownText.length - truncated.lastWords.length
        : 0;
    const rest = whole.slice(from);
    one.sent = whole.slice(0, from) + (await speak({ response, way, name: key, text: rest, paceMs, hasResult }));
    one.isComplete = COMPLETE.has(way) && one.sent === whole;
  }

  const server = createServer((request, response) => {
    respond(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    script: (name, script) => void scripts.set(name, script),
    requestsFor: (name) => requests.get(unedited(name)) ?? [],
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Recognizes a request to continue an interrupted answer. */
function readTruncated(messages: ChatBody["messages"]) {
  const at = messages.findLastIndex(({ role }) => role === "user");
  const [, lastWords] = /^Your answer was cut off[^\n]*\n\n([^]*)$/.exec(textOf(messages[at]?.content)) ?? [];
  const shownText = textOf(messages[at - 1]?.content);
  return lastWords === undefined ? undefined : { before: messages.slice(0, at - 1), shownText, lastWords };
}

function isChat({ url = "" }: IncomingMessage): boolean {
  return url.endsWith("/chat/completions");
}

async function pass(
  request: IncomingMessage,
  response: ServerResponse,
  { url, key }: { url: string; key: string },
): Promise<void> {
  const body = await buffer(request);
  const answer = await fetch(`${url}${request.url}`, {
    method: request.method ?? "GET",
    headers: { "content-type": request.headers["content-type"] ?? "", authorization: `Bearer ${key}` },
    ...(body.length > 0 && { body: new Uint8Array(body) }),
  });
  const type = answer.headers.get("content-type") ?? "application/json";
  response.writeHead(answer.status, { "content-type": type });
  response.end(Buffer.from(await answer.arrayBuffer()));
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  return Array.isArray(content) ? content.map((part: { text?: string }) => part.text ?? "").join(" ") : "";
}
