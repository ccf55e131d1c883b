import { parse } from "node:querystring";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { type App, type Logger as BoltLogger, HTTPReceiver } from "@slack/bolt";
import { Hono, type MiddlewareHandler } from "hono";
import type { Logger } from "pino";
import { bindingsOf } from "../../../src/http/bindings.ts";
import { limitBody } from "../../../src/http/body-limit.ts";

const PATH = "/slack/events";
/** The same as Bolt's own limit. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;
/** Slack sends only one kind of unsigned request, and it is short. */
const MAX_UNSIGNED_BYTES = 1024;

/** A signed request can be this late, or this machine's clock wrong by this much. */
const MAX_SKEW_S = 5 * 60;
const MAX_REMEMBERED = 10_000;

export interface RequestsOptions {
  signingSecret: string;
  boltLog: BoltLogger;
  log: Logger;
  /** If false, Slack gets an error and retries later. */
  isTaking(): boolean;
  take: App["processEvent"];
  now(): number;
}

interface Startable {
  init(app: Pick<App, "processEvent">): void;
}

/**
 * Accepts signed requests at `/slack/events`, with Bolt's receiver behind this service's HTTP server. Rejects requests
 * that Slack never sends but Bolt would accept: a time in the future, a duplicate header, or a repeated signature. Also
 * rejects a body that is not an object, because it would crash the process.
 */
export function createRequests({ signingSecret, boltLog, log, isTaking, take, now }: RequestsOptions): Hono {
  const receiver = new HTTPReceiver({
    signingSecret,
    endpoints: [PATH],
    logger: boltLog,
    // Refuses an event that the core does not accept, so that Slack sends it again.
    processEventErrorHandler: async ({ response }) => {
      if (!response.headersSent) response.writeHead(503).end();
      return false;
    },
  });
  const startable: Startable = receiver;
  startable.init({ processEvent: take });
  const replays = createReplays(now);
  const app = new Hono();
  const signed = limitBody({ maxBytes: MAX_BODY_BYTES });
  const unsigned = limitBody({ maxBytes: MAX_UNSIGNED_BYTES });

  /** Checks everything except the signature, which needs the body. */
  const checkHeaders: MiddlewareHandler = async (context, next) => {
    if (!isTaking()) return context.body(null, 503);
    const { incoming } = bindingsOf(context);
    const signature = incoming.headersDistinct["x-slack-signature"]?.[0] ?? "";
    const wasTaken = replays.has(signature);
    // Slack missed the acknowledgement and repeats the request, so the bot acknowledges it again.
    if (wasTaken && incoming.headers["x-slack-retry-num"] !== undefined) return context.body(null, 200);
    const problem = wasTaken ? "it was accepted before" : findHeaderProblem(incoming.headersDistinct, now());
    if (problem !== undefined) {
      log.warn(`Rejected a request to ${PATH}: ${problem}.`);
      return context.body(null, 401);
    }
    return (signature === "" ? unsigned : signed)(context, next);
  };

  app.post(PATH, checkHeaders, async (context) => {
    const { incoming, outgoing } = bindingsOf(context);
    const signature = incoming.headersDistinct["x-slack-signature"]?.[0] ?? "";
    // The check of the size has already read the body, so Bolt gets it from here.
    const rawBody = Buffer.from(await context.req.arrayBuffer());
    const contentType = toMediaType(incoming.headers["content-type"]);
    if (!mayHoldObject(contentType, rawBody)) return context.body(null, 400);
    outgoing.once("finish", () => {
      if (signature !== "" && outgoing.statusCode < 300) replays.add(signature);
    });
    // Bolt recognizes a form only if the media type has no charset, but proxies often add one.
    incoming.headers["content-type"] = contentType;
    receiver.requestListener(Object.assign(incoming, { rawBody }), outgoing);
    return RESPONSE_ALREADY_SENT;
  });
  return app;
}

function toMediaType(contentType = ""): string {
  const [name = ""] = contentType.split(";");
  return name.trim().toLowerCase();
}

/** False for JSON that is not an object. Bolt itself rejects a body that is not JSON. */
function mayHoldObject(contentType: string, rawBody: Buffer): boolean {
  const text = rawBody.toString();
  const payload = contentType === "application/x-www-form-urlencoded" ? parse(text)["payload"] : text;
  return typeof payload !== "string" || /^\s*[{[]/.test(payload);
}

type Headers = Readonly<Record<string, readonly string[] | undefined>>;

/** Returns how the headers show that a request is not from Slack. Undefined if only the signature can decide. */
function findHeaderProblem(headers: Headers, nowMs: number): string | undefined {
  for (const name of ["x-slack-signature", "x-slack-request-timestamp"]) {
    if ((headers[name]?.length ?? 0) > 1) return `it has the header ${name} more than once`;
  }
  const [signature = ""] = headers["x-slack-signature"] ?? [];
  const [timestamp = ""] = headers["x-slack-request-timestamp"] ?? [];
  // Slack sometimes checks the certificate with an unsigned request. Bolt accepts this request, and it has no effect.
  if (signature === "" && timestamp === "") return undefined;
  if (!/^v0=[0-9a-f]{64}$/.test(signature)) return "it has no signature";
  if (!/^\d{1,12}$/.test(timestamp)) return "its timestamp is not a number of seconds";
  const ageS = nowMs / 1_000 - Number(timestamp);
  if (ageS > MAX_SKEW_S) return "it is too old";
  return ageS < -MAX_SKEW_S ? "its timestamp is in the future" : undefined;
}

export interface Replays {
  has(signature: string): boolean;
  add(signature: string): void;
}

/** Remembers each signature as long as its timestamp is valid. */
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
