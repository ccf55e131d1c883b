import { parse } from "node:querystring";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { type Logger as BoltLogger, HTTPReceiver, type Receiver } from "@slack/bolt";
import { Hono, type MiddlewareHandler } from "hono";
import type { Logger } from "pino";
import { bindingsOf } from "../../../src/http/bindings.ts";
import { limitBody } from "../../../src/http/body-limit.ts";

const PATH = "/slack/events";
/** Bolt's own limit. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;
/** Unsigned, Slack asks one short question. */
const MAX_UNSIGNED_BYTES = 1024;

/** Slack signs as it sends; a clock may be that much off, and a request that much old. */
const MAX_SKEW_S = 5 * 60;
const MAX_REMEMBERED = 10_000;

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
 * Takes signed requests at `/slack/events`. Refuses requests that Slack never sends and Bolt would let through: with
 * times in the future, with a header twice, taken already, or with a body that is no object, which would end the
 * process.
 */
export function createRequests({ signingSecret, boltLog, log, isTaking, now }: RequestsOptions): Requests {
  const receiver = new HTTPReceiver({
    signingSecret,
    endpoints: [PATH],
    logger: boltLog,
    // An event that could not be accepted is not acknowledged, and comes again.
    processEventErrorHandler: async ({ response }) => {
      if (!response.headersSent) response.writeHead(503).end();
      return false;
    },
  });
  const replays = createReplays(now);
  const app = new Hono();
  const signed = limitBody({ maxBytes: MAX_BODY_BYTES });
  const unsigned = limitBody({ maxBytes: MAX_UNSIGNED_BYTES });

  /** Checks everything but the signature, for which the body is needed. */
  const checkHeaders: MiddlewareHandler = async (context, next) => {
    if (!isTaking()) return context.body(null, 503);
    const { incoming } = bindingsOf(context);
    const signature = incoming.headersDistinct["x-slack-signature"]?.[0] ?? "";
    const wasTaken = replays.has(signature);
    // Slack missed the acknowledgement and repeats the request: it is acknowledged once more.
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
    // The guard of its size has read the body; Bolt takes it from here.
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

/** False for JSON of any other kind. Bolt itself refuses a body that is no JSON. */
function mayHoldObject(contentType: string, rawBody: Buffer): boolean {
  const text = rawBody.toString();
  const payload = contentType === "application/x-www-form-urlencoded" ? parse(text)["payload"] : text;
  return typeof payload !== "string" || /^\s*[{[]/.test(payload);
}

type Headers = Readonly<Record<string, readonly string[] | undefined>>;

/** The reason why a request cannot be Slack's, seen from its headers; undefined where only the signature can tell. */
export function findHeaderProblem(headers: Headers, nowMs: number): string | undefined {
  for (const name of ["x-slack-signature", "x-slack-request-timestamp"]) {
    if ((headers[name]?.length ?? 0) > 1) return `it has the header ${name} more than once`;
  }
  const [signature = ""] = headers["x-slack-signature"] ?? [];
  const [timestamp = ""] = headers["x-slack-request-timestamp"] ?? [];
  // Slack asks now and then, unsigned, whether there is a certificate; Bolt lets that through with nothing in it.
  if (signature === "" && timestamp === "") return undefined;
  if (!/^v0=[0-9a-f]{64}$/.test(signature)) return "it has no signature";
  if (!/^\d{1,12}$/.test(timestamp)) return "its timestamp is no number of seconds";
  const ageS = nowMs / 1_000 - Number(timestamp);
  if (ageS > MAX_SKEW_S) return "it is too old";
  return ageS < -MAX_SKEW_S ? "its time lies in the future" : undefined;
}

/** The signatures of requests that were taken. */
export interface Replays {
  has(signature: string): boolean;
  add(signature: string): void;
}

/** Remembers a signature for as long as its time could still be right. */
export function createReplays(now: () => number): Replays {
  const takenAt = new Map<string, number>();
  return {
    has: (signature) => takenAt.has(signature),
    add(signature) {
      takenAt.set(signature, now());
      for (const [oldest, atMs] of takenAt) {
        if (takenAt.size <= MAX_REMEMBERED && now() - atMs < 2 * MAX_SKEW_S * 1_000) break;
        takenAt.delete(oldest);
      }
    },
  };
}
