import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { ApiError, toErrorBody } from "./errors.ts";
import { sendJson } from "./exchange.ts";

/** What Node finds wrong with a request before there is one, and how that is answered. */
const REFUSALS: Readonly<Record<string, { status: number; code: string; message: string }>> = {
  HPE_HEADER_OVERFLOW: { status: 431, code: "headers_too_large", message: "The headers of the request are too large." },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, code: "request_timeout", message: "The request did not arrive in time." },
};
const MALFORMED = { status: 400, code: "malformed_request", message: "The request is not HTTP that can be read." };

/**
 * Gives what is refused before a request reaches its handler the same error object as everything else. `isAnswering`
 * tells whether an answer has begun on a connection: nothing can be said there any more, and it is closed.
 */
export function refuseOnTheWire(server: Server, isAnswering: (socket: Duplex) => boolean): void {
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    if (!socket.writable || isAnswering(socket)) {
      socket.destroy();
      return;
    }
    const { status, code, message } = REFUSALS[error.code ?? ""] ?? MALFORMED;
    const body = JSON.stringify(toErrorBody(toRefusal(status, code, message)));
    const head = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      "content-type: application/json; charset=utf-8",
      `content-length: ${Buffer.byteLength(body)}`,
      "connection: close",
    ];
    socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
  });
  server.on("checkExpectation", (_request: IncomingMessage, response: ServerResponse) => {
    response.statusCode = 417;
    sendJson(response, toErrorBody(toRefusal(417, "unknown_expectation", "Only Expect: 100-continue is understood.")));
  });
}

function toRefusal(status: number, code: string, message: string): ApiError {
  return new ApiError(message, { status, type: "invalid_request_error", code });
}
