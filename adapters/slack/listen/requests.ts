import { parse } from "node:querystring";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { type Logger as BoltLogger, HTTPReceiver, type Receiver } from "@slack/bolt";
import { Hono, type MiddlewareHandler } from "hono";
import type { Logger } from "pino";
import { bindingsOf } from "../../../src/http/bindings.ts";
import { limitBody } from "../../../src/http/body-limit.ts";
import { createReplays, findHeaderProblem } from "./signature.ts";

const PATH = "/slack/events";
/** Bolt's own limit. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;
/** Unsigned, Slack asks one short question. */
const MAX_UNSIGNED_BYTES = 1024;

export interface RequestsOptions {
  signingSecret: string;
  boltLog: BoltLogger;
  log: Logger;
  /** False: Slack is told to come again later. */
  isTaking(): boolean;
  now(): number;
}

/** Bolt's receiver behind our own HTTP server. */
export interface Requests {
  receiver: Receiver;
  app: Hono;
}

/**
 * Takes signed requests at `/slack/events`. What Bolt would let through and Slack never sends is refused before: times
 * in the future, headers twice, a request that was taken already, a body that is no object and would be the end of
 * the process.
 */
export function createRequests({ signingSecret, boltLog, log, isTaking, now }: RequestsOptions): Requests {
  const receiver = new HTTPReceiver({
    signingSecret,
    endpoints: [PATH],
    logger: boltLog,
    // Not acknowledged, whatever it was: what could not be taken over comes again.
    processEventErrorHandler: async ({ response }) => {
      if (!response.headersSent) response.writeHead(503).end();
      return false;
    },
  });
  const replays = createReplays(now);
  const app = new Hono();
  const signed = limitBody({ maxBytes: MAX_BODY_BYTES });
  const unsigned = limitBody({ maxBytes: MAX_UNSIGNED_BYTES });

  /** Everything that can be told before the body is read: only whether the signature is right cannot. */
  const checkHeaders: MiddlewareHandler = async (context, next) => {
    if (!isTaking()) return context.body(null, 503);
    const { incoming } = bindingsOf(context);
    const signature = incoming.headersDistinct["x-slack-signature"]?.[0] ?? "";
    const wasTaken = replays.has(signature);
    // Slack did not hear that it was taken, and repeats it within the second: it is told so, and nothing else happens.
    if (wasTaken && incoming.headers["x-slack-retry-num"] !== undefined) return context.body(null, 200);
    const problem = wasTaken ? "it was taken before" : findHeaderProblem(incoming.headersDistinct, now());
    if (problem !== undefined) {
      log.warn(`A request to ${PATH} was refused: ${problem}.`);
      return context.body(null, 401);
    }
    return (signature === "" ? unsigned : signed)(context, next);
  };

  app.post(PATH, checkHeaders, async (context) => {
    const { incoming, outgoing } = bindingsOf(context);
    const signature = incoming.headersDistinct["x-slack-signature"]?.[0] ?? "";
    // The body was read by who guards its size; Bolt takes it from there.
    const rawBody = Buffer.from(await context.req.arrayBuffer());
    const contentType = toMediaType(incoming.headers["content-type"]);
    if (!mayHoldObject(contentType, rawBody)) return context.body(null, 400);
    outgoing.once("finish", () => {
      if (signature !== "" && outgoing.statusCode < 300) replays.add(signature);
    });
    // Bolt knows a form only by its bare name, and proxies like to say what characters it is written in.
    incoming.headers["content-type"] = contentType;
    receiver.requestListener(Object.assign(incoming, { rawBody }), outgoing);
    return RESPONSE_ALREADY_SENT;
  });
  return { receiver, app };
}

function toMediaType(contentType = ""): string {
  const [name = ""] = contentType.split(";");
  return name.trim().toLowerCase();
}

/** False for JSON of any other kind. What is no JSON at all is refused by Bolt. */
function mayHoldObject(contentType: string, rawBody: Buffer): boolean {
  const text = rawBody.toString();
  const payload = contentType === "application/x-www-form-urlencoded" ? parse(text)["payload"] : text;
  return typeof payload !== "string" || /^\s*[{[]/.test(payload);
}
