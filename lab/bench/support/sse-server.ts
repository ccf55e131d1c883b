import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { CHUNK_FRAME, CHUNKS, countDue, FIRST_EVENT, LAST_EVENT, STREAMS, toFrame } from "./sse-load.ts";

/**
 * A gateway that starts to answer when all streams are open. The streams get their chunks in turn and at an even rate.
 * The process sends its address to its parent, and exits with the parent.
 */
const TICK_MS = 1;
const FIRST_FRAME = toFrame(FIRST_EVENT);
const LAST_FRAME = toFrame(`${LAST_EVENT}data: [DONE]\n\n`);

let waiting: ServerResponse[] = [];

const server = createServer((request, response) => {
  request.resume().once("end", () => open(response));
});

function open(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.flushHeaders();
  // Write ready-made frames to the socket, because `response` would format each chunk again.
  response.socket?.setNoDelay(true).write(FIRST_FRAME);
  waiting.push(response);
  if (waiting.length < STREAMS) return;
  const streams = waiting;
  waiting = [];
  pump(streams);
}

function pump(streams: readonly ServerResponse[]): void {
  const total = streams.length * CHUNKS;
  const startMs = performance.now();
  let written = 0;
  const timer = setInterval(() => {
    const due = Math.floor(streams.length * countDue(performance.now() - startMs));
    for (; written < due; written++) streams[written % streams.length]?.socket?.write(CHUNK_FRAME);
    if (written < total) return;
    clearInterval(timer);
    for (const response of streams) {
      response.socket?.write(LAST_FRAME);
      response.end();
    }
  }, TICK_MS);
}

process.once("disconnect", () => process.exit());
server.listen({ port: 0, host: "127.0.0.1", backlog: STREAMS }, () => {
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
