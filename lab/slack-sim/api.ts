import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { type Arguments, readArguments } from "./arguments.ts";
import type { Core } from "./core.ts";
import { type Dialect, toToldAnswer } from "./dialect.ts";
import type { Fault, Faults } from "./faults.ts";
import { type Methods, needScope } from "./method.ts";
import { createRateLimiter } from "./rate-limiter.ts";
import { SlackRefusal } from "./refusal.ts";
import { type Claim, createTokens } from "./tokens.ts";
import type { Json, Workspace } from "./world.ts";

/** One call and its response, without tokens. */
export interface ApiRequest {
  method: string;
  args: Json;
  workspaceId: string | undefined;
  atMs: number;
  /** When the response was sent; undefined while the call is in progress. */
  endedAtMs: number | undefined;
  /** The wait that a 429 requested. */
  retryAfterMs: number | undefined;
  /** The HTTP status; 0 if the connection was dropped. */
  status: number;
  error: string | undefined;
  headers: IncomingMessage["headers"];
}

/** A feature that a workspace can lack. Calls that use it are then refused. */
export type Novelty = "chunks" | "feedback_buttons" | "slack_file";

export type Streaming = "on" | "unknown_method" | "http404";

export interface ApiDeps {
  core: Core;
  methods: Methods;
  faults: Faults;
  streaming(): Streaming;
  isUnknown(novelty: Novelty): boolean;
  /** The error for every call that changes a message; undefined if such calls work. */
  sealed(): string | undefined;
  dialect: Dialect;
}

interface Answer {
  status: number;
  body: Json;
  headers: Record<string, string>;
}

const STREAM_METHODS = /^chat\.(start|append|stop)Stream$/;

/** The Web API. Checks each call's token, rate limit, scopes and arguments, in this order. */
export function createApi({ core, methods, faults, streaming, isUnknown, sealed, dialect }: ApiDeps) {
  const { clock, changes, limits, violations } = core;
  const requests: ApiRequest[] = [];
  const limiter = createRateLimiter(limits, clock.now);
  const tokens = createTokens(core);

  async function call(name: string, args: Arguments, claim: Claim): Promise<Answer> {
    const method = methods[name];
    const isMissing = streaming() === "unknown_method" && STREAM_METHODS.test(name);
    if (method === undefined || isMissing) return refused("unknown_method", { req_method: name });
    try {
      const workspace = tokens.workspaceOf(claim, method.token, name);
      const waitS = limiter.take(name, workspace.id, args.text("channel"));
      if (waitS !== undefined) return limited(name, workspace, waitS);
      needScope(workspace, ...method.scopes);
      refuseUnknown(args);
      const why = name === "chat.update" ? sealed() : undefined;
      if (why !== undefined) throw new SlackRefusal(why);
      const owner = tokens.find(claim.token);
      const isOrgWide = owner !== undefined && "granted" in owner;
      const result = await method.run(args, { workspace, isOrgWide });
      const headers = { "x-oauth-scopes": [...workspace.scopes].join(",") };
      return { status: 200, body: { ok: true, ...result }, headers };
    } catch (error) {
      if (error instanceof SlackRefusal) return refused(error.code, error.fields);
      throw error;
    }
  }

  function refuseUnknown(args: Arguments): void {
    if (isUnknown("chunks") && args.list("chunks").length > 0) throw new SlackRefusal("invalid_chunks");
    const hasFeedback = args.list("blocks").some(({ type }) => type === "context_actions");
    if (isUnknown("feedback_buttons") && hasFeedback) throw new SlackRefusal("invalid_blocks");
    const hasFile = args.list("blocks").some(({ slack_file }) => slack_file !== undefined);
    if (isUnknown("slack_file") && hasFile) throw new SlackRefusal("invalid_blocks");
  }

  function limited(method: string, { name }: Workspace, waitS: number): Answer {
    violations.record("rate-limited", `${method} was called too often in ${name}; free again in ${waitS} s.`);
    return limits.refusal === "http-429" ? tooMany(waitS) : refused(limits.refusal);
  }

  async function handle(request: IncomingMessage, response: ServerResponse, body: Buffer, url: URL): Promise<void> {
    const name = url.pathname.replace(/^\/api\//, "");
    const sent = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
    const wasTold = tokens.isTold(sent);
    const args = await readArguments(request, body, url);
    const entry: ApiRequest = {
      method: name,
      args: args.raw,
      workspaceId: undefined,
      atMs: clock.now(),
      endedAtMs: undefined,
      retryAfterMs: undefined,
      status: 0,
      error: undefined,
      headers: withoutSecrets(request.headers),
    };
    requests.push(entry);
    changes.changed();
    const token = sent ?? args.token;
    const teamId = args.text("team_id");
    const owner = tokens.find(token);
    entry.workspaceId = owner !== undefined && "granted" in owner ? (teamId ?? owner.id) : owner?.id;
    const channelId = args.text("channel") ?? args.text("channel_id");
    const answer = await answerFor(name, args, { token, teamId, channelId, wasTold });
    if (answer !== undefined) {
      entry.status = answer.status;
      entry.error = typeof answer.body["error"] === "string" ? answer.body["error"] : undefined;
      const waitS = answer.headers["retry-after"];
      if (waitS !== undefined) entry.retryAfterMs = Number(waitS) * 1_000;
    }
    entry.endedAtMs = clock.now();
    write(response, name, answer, dialect);
    changes.changed();
  }

  /** Returns undefined to drop the connection. */
  async function answerFor(name: string, args: Arguments, claim: Claim): Promise<Answer | undefined> {
    if (streaming() === "http404" && STREAM_METHODS.test(name)) return { status: 404, body: {}, headers: {} };
    const fault = faults.take(name);
    if (fault?.delayMs !== undefined) await sleep(fault.delayMs);
    const isOnlySlow = fault !== undefined && Object.keys(fault).every((key) => key === "delayMs");
    if (fault === undefined || isOnlySlow) return call(name, args, claim);
    const answer = fault.isDone ? await call(name, args, claim) : undefined;
    if (fault.answersLateMs !== undefined) await sleep(fault.answersLateMs, undefined, { ref: false });
    const { omits, warning } = fault;
    if (answer === undefined || (omits === undefined && warning === undefined)) return faulty(fault);
    const without = Object.fromEntries((omits ?? []).map((field) => [field, undefined]));
    return { ...answer, body: { ...answer.body, ...without, ...(warning !== undefined && { warning }) } };
  }

  return { handle, requests: requests as readonly ApiRequest[] };
}

function faulty({ cutsConnection, html, retryAfterS, error, words, status }: Fault): Answer | undefined {
  if (cutsConnection) return undefined;
  if (retryAfterS !== undefined) return tooMany(retryAfterS);
  if (html !== undefined) return { status: status ?? 200, body: { html }, headers: { "content-type": "text/html" } };
  const about = words === undefined ? {} : { response_metadata: { messages: words } };
  return { status: status ?? 200, body: error === undefined ? {} : { ok: false, error, ...about }, headers: {} };
}

function tooMany(waitS: number): Answer {
  return { status: 429, body: { ok: false, error: "ratelimited" }, headers: { "retry-after": String(waitS) } };
}

function refused(error: string, fields: Json = {}): Answer {
  return { status: 200, body: { ok: false, error, ...fields }, headers: {} };
}

function write(response: ServerResponse, method: string, answer: Answer | undefined, dialect: Dialect): void {
  if (answer === undefined) {
    response.socket?.destroy();
    return;
  }
  const { status, body, headers } = answer;
  const contentType = "application/json; charset=utf-8";
  if (typeof body["html"] === "string") {
    response.writeHead(status, { "content-type": contentType, ...headers }).end(body["html"]);
    return;
  }
  const told = toToldAnswer(method, body, dialect);
  response.writeHead(status, { "content-type": contentType, ...told.headers, ...headers });
  for (const part of told.parts) response.write(part);
  response.end();
}

function withoutSecrets({ authorization: _authorization, ...headers }: IncomingMessage["headers"]) {
  return headers;
}
