import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer, text } from "node:stream/consumers";
import { answerTo, namesIn, unedited } from "./answers.ts";
import { COMPLETE, speak, type UpstreamWay } from "./upstream-faults.ts";

/** One request, and what came of it. */
export interface Asked {
  /** The questions it was about. */
  names: string[];
  way: UpstreamWay;
  atMs: number;
  /** The answer, as far as it was said. */
  said: string;
  /** All was said, and that it was all. */
  isComplete: boolean;
  /** It brought what a tool had given. */
  isSecond: boolean;
  /** The address at which the caller reached the upstream. */
  host: string;
  /** What stood in the request before the last question, oldest first. */
  earlier: ReadonlyArray<{ role: string; text: string }>;
}

/** The upstream's ways with a question: each request about it takes the next way, and all further ones the last. */
export interface Script {
  ways: readonly UpstreamWay[];
  paceMs: number;
}

/** A gateway over a real socket that answers each question as its script says. */
export interface Upstream {
  url: string;
  script(name: string, script: Script): void;
  /** Every request that had this question, edited or not, as its last; oldest first. */
  asked(name: string): readonly Asked[];
  close(): Promise<void>;
}

export interface UpstreamOptions {
  /** Who answers everything that is no chat, with the key that opens it. */
  elsewhere?: { url: string; key: string };
}

interface ChatBody {
  messages: Array<{ role: string; content: unknown }>;
}

const PLAIN: Script = { ways: ["answer"], paceMs: 5 };

export async function openUpstream({ elsewhere }: UpstreamOptions = {}): Promise<Upstream> {
  const scripts = new Map<string, Script>();
  const asked = new Map<string, Asked[]>();

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (elsewhere !== undefined && !isChat(request)) return pass(request, response, elsewhere);
    const { messages } = JSON.parse(await text(request)) as ChatBody;
    const cut = readCutAnswer(messages);
    const lastUser = (cut?.before ?? messages).findLastIndex(({ role }) => role === "user");
    const names = namesIn(textOf(messages[lastUser]?.content));
    const hasResult = messages.slice(lastUser).some(({ role }) => role === "tool");
    // Questions that nobody answered stand before the one that is asked.
    const key = unedited(names.at(-1) ?? "");
    const { ways, paceMs } = scripts.get(key) ?? PLAIN;
    const before = (asked.get(key) ?? []).filter((one) => !one.isSecond);
    // The second half of a turn with a tool is no step of its own.
    const way = hasResult ? "answer" : (ways[Math.min(before.length, ways.length - 1)] ?? "answer");
    const one: Asked = {
      names,
      way,
      atMs: Date.now(),
      said: "",
      isComplete: false,
      isSecond: hasResult,
      host: request.headers.host ?? "",
      earlier: messages.slice(0, lastUser).map(({ role, content }) => ({ role, text: textOf(content) })),
    };
    asked.set(key, [...(asked.get(key) ?? []), one]);
    const whole = answerTo(names);
    const from = cut !== undefined && whole.startsWith(cut.said) ? cut.said.length - cut.lastWords.length : 0;
    const rest = whole.slice(from);
    one.said = whole.slice(0, from) + (await speak({ response, way, name: key, text: rest, paceMs, hasResult }));
    one.isComplete = COMPLETE.has(way) && one.said === whole;
  }

  const server = createServer((request, response) => {
    respond(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    script: (name, script) => void scripts.set(name, script),
    asked: (name) => asked.get(unedited(name)) ?? [],
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A request to go on with an answer that was cut off. */
function readCutAnswer(messages: ChatBody["messages"]) {
  const at = messages.findLastIndex(({ role }) => role === "user");
  const [, lastWords] = /^Your answer was cut off[^\n]*\n\n([^]*)$/.exec(textOf(messages[at]?.content)) ?? [];
  const said = textOf(messages[at - 1]?.content);
  return lastWords === undefined ? undefined : { before: messages.slice(0, at - 1), said, lastWords };
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
