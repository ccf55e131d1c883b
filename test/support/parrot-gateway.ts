import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";

interface Request {
  messages: Array<{ role: string; content: string }>;
}

/** A gateway whose answer depends only on the last question, so that a checker knows every word in it. */
export interface ParrotGateway {
  url: string;
  close(): Promise<void>;
}

const PARAGRAPHS = [
  "The quick brown fox jumps over the lazy dog, and then it rests for a while in the shade of an old tree.",
  "- eins\n- zwei\n- drei",
  "いろはにほへと ちりぬるを わかよたれそ つねならむ。",
  "```js\nconst answer = 42;\n\nconsole.log(answer);\n```",
  "| a | b |\n| --- | --- |\n| 1 | 2 |",
  "Plain words again, 🧪 with a picture in between, to the end of the paragraph.",
];

/** The answers to questions. Some of them need several messages. */
function answerTo(question: string): string {
  const size = Array.from(question, (character) => character.charCodeAt(0)).reduce((sum, code) => sum + code, 0) % 7;
  const count = size === 0 ? 90 : 2 + size * 2;
  const body = Array.from(
    { length: count },
    (_, index) => `${index}. ${PARAGRAPHS[(index + size) % PARAGRAPHS.length]}`,
  );
  return [`Answer to ${question.split(/\s+/).join(" ")}.`, ...body].join("\n\n");
}

/** `paceMs` is the time between two of an answer's forty or so chunks. */
export async function startParrotGateway(paceMs: number, toAnswer = answerTo): Promise<ParrotGateway> {
  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // This gateway lists no models.
    if (request.method === "GET") return void response.writeHead(404).end();
    const { messages } = JSON.parse(await text(request)) as Request;
    const answer = toAnswer(messages.at(-1)?.content ?? "");
    const chunk = (delta: object, finish: string | null = null) =>
      `data: ${JSON.stringify({
        id: "chatcmpl-1",
        object: "chat.completion.chunk",
        created: 0,
        model: "parrot",
        choices: [{ index: 0, delta, finish_reason: finish }],
      })}\n\n`;
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(chunk({ role: "assistant", content: "" }));
    const step = Math.ceil(answer.length / 40);
    for (let at = 0; at < answer.length && !response.destroyed; at += step) {
      await sleep(paceMs);
      response.write(chunk({ content: answer.slice(at, at + step) }));
    }
    response.end(`${chunk({}, "stop")}data: [DONE]\n\n`);
  }
  const server = createServer((request, response) => void respond(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
