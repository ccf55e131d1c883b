// Serves the sandbox gateway in a vendor's dialect.
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { startSandbox } from "../../src/sandbox/server.ts";
import {
  type Accent,
  type Answer,
  type ChatRequest,
  chatRequest,
  type Dialect,
  isRecord,
  type Refusal,
  type Rule,
  type Sent,
} from "./dialect.ts";
import { DIALECTS, type DialectName } from "./dialects/index.ts";
import { converse, type Drawn, draw, generateRequest, type Picture, readWish, SandboxError } from "./sandbox.ts";
import { toEvent, toStream, toWhole } from "./stream.ts";
import { type TraitName, toAccent } from "./traits.ts";

export interface DialectOptions {
  dialect: DialectName;
  /** Default: any free port. */
  port?: number;
  host?: string;
  /** Extra behaviour, see `traits.ts`. */
  traits?: readonly TraitName[];
}

export interface Seen {
  path: string;
  /** The parsed JSON, or the text fields of a form. */
  body: unknown;
  /** Set for a valid chat request. */
  chat?: ChatRequest;
  /** Number of reference images in an image request. */
  references?: number;
  /** Absent if the server accepted the request. */
  refusal?: Refusal;
  answer?: Answer;
}

export interface RunningDialect {
  /** The vendor's base URL on this machine. */
  url: string;
  apiKey: string;
  chatModel: string;
  imageModel: string | undefined;
  /** All requests since the start, in order. */
  readonly requests: readonly Seen[];
  /** Replaces the traits for all further requests. */
  use(...traits: TraitName[]): void;
  close(): Promise<void>;
}

const NOT_FOUND: Refusal = { status: 404, body: { detail: "Not Found" } };

interface Exchange {
  dialect: Dialect;
  traits: readonly TraitName[];
  sandboxUrl: string;
  request: IncomingMessage;
  response: ServerResponse;
  seen: Seen;
}

/** Starts a sandbox behind a dialect. Rejects if the port is in use. */
export async function startDialect({
  dialect: name,
  port = 0,
  host = "127.0.0.1",
  traits = [],
}: DialectOptions): Promise<RunningDialect> {
  const dialect: Dialect = DIALECTS[name];
  const apiKey = `sk-lab-${name}`;
  const unbounded = { requestsPerMinute: Number.POSITIVE_INFINITY, tokensPerSecond: Number.POSITIVE_INFINITY };
  const sandbox = await startSandbox({ host: "127.0.0.1", port: 0, log: pino({ level: "silent" }), ...unbounded });
  const requests: Seen[] = [];
  let inUse = traits;
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://lab").pathname;
    const seen: Seen = { path, body: undefined };
    requests.push(seen);
    const exchange = { dialect, traits: inUse, sandboxUrl: sandbox.url, request, response, seen };
    serve(exchange, apiKey).catch((error: unknown) => answerFailure(exchange, error));
  });
  server.listen(port, host);
  await once(server, "listening");
  const address = server.address();
  const actualPort = typeof address === "object" && address !== null ? address.port : port;
  return {
    url: `http://${host}:${actualPort}${toBasePath(dialect)}`,
    apiKey,
    chatModel: dialect.chatModel,
    imageModel: dialect.imageModel,
    requests,
    use(...next) {
      inUse = next;
    },
    async close() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await Promise.all([closed, sandbox.close()]);
    },
  };
}

async function serve(exchange: Exchange, apiKey: string): Promise<void> {
  const { dialect, request, seen } = exchange;
  const { draws, hasModelList } = dialect;
  const basePath = toBasePath(dialect);
  const route = `${request.method} ${seen.path.startsWith(basePath) ? seen.path.slice(basePath.length) : ""}`;
  const body = await readBody(request);
  const native = /^POST \/v1beta\/models\/[^/]+:generateContent$/.test(`${request.method} ${seen.path}`);
  if (native && draws?.hasGenerateContent) return generateContent(exchange, apiKey, body);
  if (request.headers.authorization !== `Bearer ${apiKey}`) {
    return refuse(exchange, toRefusal(dialect, 401, "Incorrect API key provided.", "invalid_api_key"));
  }
  if (route === "POST /chat/completions") return answerChat(exchange, body);
  if (route === "GET /models" && hasModelList) return listModels(exchange);
  if (route === "POST /images/generations" && draws?.by === "images") return drawFromWords(exchange, body);
  if (route === "POST /images/edits" && draws?.by === "images") return drawFromPictures(exchange, body);
  return refuse(exchange, dialect.unknownPath?.(`${request.method} ${seen.path}`) ?? NOT_FOUND);
}

async function answerChat(exchange: Exchange, bytes: Buffer): Promise<void> {
  const { dialect, seen, sandboxUrl, response } = exchange;
  seen.body = parseJson(bytes);
  const { success, data, error } = chatRequest.safeParse(seen.body);
  if (!success) return refuse(exchange, toRefusal(dialect, 400, error.message, "invalid_request"));
  seen.chat = data;
  const traits = exchange.traits.map((name) => toAccent(name, dialect));
  const refusal = findRefusal([...traits, { rules: [checkModel(dialect)] }, dialect], data);
  if (refusal !== undefined) return refuse(exchange, refusal);

  const isDrawing = dialect.draws?.by === "chat" && data.model === dialect.imageModel;
  const plain = await converse(sandboxUrl, data, dialect.thinking !== undefined && !isDrawing);
  const drawn = isDrawing ? await draw(sandboxUrl, readWish(data)) : undefined;
  const plainAnswer = drawn
    ? { ...plain, content: drawn.text, pictures: [`data:image/png;base64,${drawn.base64}`] }
    : plain;
  const accents = [dialect, ...traits];
  const answer = accents.reduce((last, { toAnswer }) => toAnswer?.(last, data) ?? last, plainAnswer);
  seen.answer = answer;
  const plainStream: readonly Sent[] = toStream(answer, dialect, data);
  const stream = accents.reduce((last, accent) => accent.toStream?.(last, answer) ?? last, plainStream);
  if (data.stream === true) return play(response, stream, answer);
  sendJson(response, 200, toWhole(stream, answer));
}

function findRefusal(accents: readonly Accent[], request: ChatRequest): Refusal | undefined {
  for (const rule of accents.flatMap(({ rules = [] }) => rules)) {
    const refusal = rule(request);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

function checkModel(dialect: Dialect): Rule {
  const known = [dialect.chatModel, ...(dialect.draws?.by === "chat" ? [dialect.imageModel] : [])];
  return ({ model }) =>
    known.includes(model)
      ? undefined
      : toRefusal(dialect, 404, `The model ${model} does not exist.`, "model_not_found");
}

function listModels({ dialect, response }: Exchange): void {
  const ids = [dialect.chatModel, ...(dialect.imageModel === undefined ? [] : [dialect.imageModel])];
  const data = ids.map((id) => ({ id, object: "model", created: 1_767_225_600, owned_by: dialect.title }));
  sendJson(response, 200, { object: "list", data });
}

async function drawFromWords(exchange: Exchange, bytes: Buffer): Promise<void> {
  const body = parseJson(bytes);
  exchange.seen.body = body;
  return drawWith(exchange, isRecord(body) ? body : {}, []);
}

/** In OpenAI's API, a request with reference images is a form. */
async function drawFromPictures(exchange: Exchange, bytes: Buffer): Promise<void> {
  const type = exchange.request.headers["content-type"] ?? "";
  if (!type.startsWith("multipart/form-data")) {
    return refuse(exchange, toRefusal(exchange.dialect, 400, "Expected multipart/form-data.", "invalid_content_type"));
  }
  const form = await new Response(new Uint8Array(bytes), { headers: { "content-type": type } }).formData();
  const entries = [...form.entries()];
  const references: Picture[] = [];
  for (const [, value] of entries) {
    if (typeof value === "string") continue;
    references.push({ mimeType: value.type, base64: Buffer.from(await value.arrayBuffer()).toString("base64") });
  }
  const fields = Object.fromEntries(entries.filter(([, value]) => typeof value === "string"));
  exchange.seen.body = fields;
  return drawWith(exchange, fields, references);
}

async function drawWith(
  exchange: Exchange,
  fields: Record<string, unknown>,
  references: readonly Picture[],
): Promise<void> {
  const { dialect, response, sandboxUrl } = exchange;
  const { model, prompt, size } = fields;
  if (model !== dialect.imageModel) {
    return refuse(exchange, toRefusal(dialect, 404, `The model ${String(model)} does not exist.`, "model_not_found"));
  }
  if (typeof prompt !== "string" || prompt === "") {
    return refuse(exchange, toRefusal(dialect, 400, "You must provide a prompt.", "missing_required_parameter"));
  }
  exchange.seen.references = references.length;
  const types = references.map(({ mimeType }) => mimeType);
  const refusal = dialect.draws?.refuse?.(fields, types);
  if (refusal !== undefined) return refuse(exchange, refusal);
  const wish: Drawn = { prompt, references, aspectRatio: toRatio(size) };
  const { base64 } = await draw(sandboxUrl, wish);
  const isLink = dialect.draws?.linksByDefault === true && fields["response_format"] !== "b64_json";
  const picture = isLink ? { url: "https://pictures.invalid/1.png" } : { b64_json: base64 };
  sendJson(response, 200, { created: 1_767_225_600, data: [picture] });
}

async function generateContent(exchange: Exchange, apiKey: string, bytes: Buffer): Promise<void> {
  const { dialect, request, response, sandboxUrl, seen } = exchange;
  seen.body = parseJson(bytes);
  if (request.headers["x-goog-api-key"] !== apiKey) {
    const message =
      "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential.";
    return refuse(exchange, toRefusal(dialect, 401, message, "UNAUTHENTICATED"));
  }
  const { success, data, error } = generateRequest.safeParse(seen.body);
  if (!success) return refuse(exchange, toRefusal(dialect, 400, error.message, "INVALID_ARGUMENT"));
  const parts = data.contents.flatMap((content) => content.parts);
  const references = parts.flatMap(({ inlineData: one }) =>
    one ? [{ mimeType: one.mimeType, base64: one.data }] : [],
  );
  seen.references = references.length;
  const { aspectRatio, imageSize } = data.generationConfig?.imageConfig ?? {};
  const prompt = parts.map(({ text = "" }) => text).join("\n");
  const { text, base64 } = await draw(sandboxUrl, { prompt, references, aspectRatio, imageSize });
  const drawn = [{ text }, { inlineData: { mimeType: "image/png", data: base64 } }];
  sendJson(response, 200, { candidates: [{ content: { role: "model", parts: drawn }, finishReason: "STOP" }] });
}

/** Returns the ratio of a size, for example 3:2 for "1536x1024". */
function toRatio(size: unknown): string | undefined {
  const [, width, height] = /^(\d+)x(\d+)$/.exec(typeof size === "string" ? size : "") ?? [];
  if (width === undefined || height === undefined) return undefined;
  if (width === height) return "1:1";
  return Number(width) > Number(height) ? "3:2" : "2:3";
}

function toBasePath({ address }: Dialect): string {
  return new URL(address).pathname.replace(/\/$/, "");
}

function toRefusal(dialect: Dialect, status: number, message: string, code: string): Refusal {
  return { status, body: dialect.errorBody(status, message, code) };
}

function refuse({ seen, response }: Exchange, refusal: Refusal): void {
  seen.refusal = refusal;
  for (const [name, value] of Object.entries(refusal.headers ?? {})) response.setHeader(name, value);
  if (typeof refusal.body === "string") response.writeHead(refusal.status).end(refusal.body);
  else sendJson(response, refusal.status, refusal.body);
}

function answerFailure(exchange: Exchange, error: unknown): void {
  if (exchange.response.headersSent) return void exchange.response.destroy();
  const { status, code } = error instanceof SandboxError ? error : { status: 500, code: "internal_error" };
  const message = error instanceof Error ? error.message : "The dialect failed.";
  refuse(exchange, toRefusal(exchange.dialect, status, message, code));
}

async function play(response: ServerResponse, stream: readonly Sent[], answer: Answer): Promise<void> {
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  for (const sent of stream) {
    if (sent.type === "cut") {
      // Flush first, so that the client receives everything written before.
      await new Promise<void>((resolve) => response.write("", () => resolve()));
      response.destroy();
      return;
    }
    if (sent.type === "wait") await sleep(sent.forMs);
    else response.write(sent.type === "raw" ? sent.text : toEvent(sent, answer));
  }
  response.end();
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    return undefined;
  }
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}
