import type { Logger } from "pino";
import { ask, type CallOptions, type Endpoint, type Route } from "./ask.ts";
import { createBreaker, type PauseBoard } from "./breaker.ts";
import { createStreamChat, type StreamOptions } from "./chat.ts";
import { GatewayError } from "./errors.ts";
import type { ExtraBody } from "./extra-body.ts";
import { hasError, toStreamError } from "./failures.ts";
import type { GeneratedImage } from "./image-answer.ts";
import type { ImageApi, ImageRequest } from "./image-ways.ts";
import { createImageClient, type ImageProbe } from "./images.ts";
import { isRecord, parseJson } from "./json.ts";
import { DEFAULT_LIMITS, type GatewayLimits } from "./limits.ts";
import type { ChatRequest } from "./request.ts";
import { createSafeText, type SafeText } from "./safe-text.ts";
import { createTransport, readBody } from "./transport.ts";
import type { Watch } from "./watch.ts";

export type { CallOptions, Detour, RetryNotice } from "./ask.ts";
export type { StreamOptions } from "./chat.ts";
export type { GatewayLimits } from "./limits.ts";

/**
 * Every method rejects with a GatewayError, or with the signal's reason when the signal aborts. Before that it retries
 * failures that pass, and changes a request that is refused, as long as nothing of the answer has come. It passes on the
 * rejection of `beforeSend`.
 */
export interface Gateway {
  /**
   * Hands chunks over as they come. Resolves when the answer is complete: after a finish_reason or `[DONE]`. Rejects
   * otherwise, and with the error of `onChunk`. Aborting closes the connection within a second. Before the first text or
   * tool call, chunks of a failed attempt may precede those of the next.
   */
  streamChat(request: ChatRequest, signal: AbortSignal, options: StreamOptions): Promise<void>;
  /** Ids of the models that the key may use, at the first gateway or the second. */
  listModels(signal: AbortSignal, which?: Endpoint["name"]): Promise<string[]>;
  /** Rejects as `rejected` also if the model declines to draw; the message then quotes its reason. */
  generateImage(request: ImageRequest, signal: AbortSignal, options?: CallOptions): Promise<GeneratedImage>;
  /** Ends every running call. */
  close(): Promise<void>;
}

/** What the doctor asks besides. */
export interface ProbedGateway extends Gateway {
  /** Finds out how a model draws, with requests that draw nothing. */
  probeImages(model: string, signal: AbortSignal): Promise<ImageProbe>;
}

export interface GatewayAddress {
  /** With or without a slash or `/v1` at its end. */
  baseUrl: string;
  apiKey: string;
  /** Sent with every call; they replace ours of the same name. */
  headers?: Readonly<Record<string, string>> | undefined;
}

export interface GatewayOptions extends GatewayAddress {
  /** Header that carries the key on the image endpoint if a Bearer is answered with 401. */
  imageKeyHeader?: string | undefined;
  /** How the models for pictures are asked; absent: it is found out for each of them. */
  imageApi?: ImageApi | undefined;
  /** Asked while the first is down: for the same model, and for the fallback model if it does not give that. */
  second?: GatewayAddress | undefined;
  /** Asked in place of every other model for conversations. */
  fallbackModel?: string | undefined;
  /** Fields beyond the interface; absent: none are sent. */
  extraBody?: ExtraBody;
  log: Logger;
  limits?: Partial<GatewayLimits>;
  /** Shares pauses with other processes. */
  pausesOf?: ((name: Endpoint["name"]) => PauseBoard) | undefined;
  /** Called with the number of paused models of a gateway whenever it changes. */
  onPaused?: (name: Endpoint["name"], count: number) => void;
  /** Called with each model that gave a whole answer. */
  onAnswered?: (name: Endpoint["name"], model: string) => void;
}

/** Throws a `rejected` GatewayError if an option cannot be used. */
export function createGateway({
  imageKeyHeader,
  imageApi,
  second,
  fallbackModel,
  log,
  onAnswered,
  ...options
}: GatewayOptions): ProbedGateway {
  const { extraBody = { all: {}, models: new Map() }, pausesOf, onPaused } = options;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const safe = createSafeText([options, second].flatMap((address) => address?.apiKey ?? []));
  const deps = { limits, log, safe, extraBody, onAnswered };

  function open(name: Endpoint["name"], { baseUrl, apiKey, headers }: GatewayAddress) {
    checkHeader(apiKey, imageKeyHeader);
    const transport = createTransport({ baseUrl: readBaseUrl(baseUrl), apiKey, headers, limits, safe });
    const breaker = createBreaker(limits, { board: pausesOf?.(name), onPaused: (count) => onPaused?.(name, count) });
    return { name, breaker, ...transport };
  }

  const first = open("first", options);
  const other = second && open("second", second);
  const endpoints = other === undefined ? ([first] as const) : ([first, other] as const);
  const streamChat = createStreamChat(deps);
  const images = createImageClient({ ...deps, keyHeader: imageKeyHeader, imageApi });

  /** The requested route, then the fallback model and the second gateway. */
  function toRoutes(model: string, models: readonly string[]): [Route, ...Route[]] {
    const [, ...others] = endpoints.flatMap((endpoint) => models.map((name) => ({ endpoint, model: name })));
    return [{ endpoint: first, model }, ...others];
  }

  return {
    async streamChat(request, signal, how) {
      const { model } = request;
      const mayFallBack = fallbackModel !== undefined && how.mayAsk?.(fallbackModel) !== false;
      const routes = toRoutes(model, [...new Set([model, mayFallBack ? fallbackModel : model])]);
      await streamChat(request, routes, how, signal);
    },
    generateImage: (request, signal, how = {}) =>
      images.generate(request, toRoutes(request.model, [request.model]), how, signal),
    probeImages: (model, signal) => images.probe({ endpoint: first, model }, signal),
    listModels(signal, which = "first") {
      const endpoint = which === "second" && other ? other : first;
      // The list is not a model's: its pauses are its own.
      const routes = [{ endpoint, model: "" }] as const;
      const adapt = () => false;
      async function call(watch: Watch): Promise<string[]> {
        const body = await endpoint.send({ method: "GET", api: "openai", path: "/models" }, watch);
        return parseModelIds(await readBody(body, limits.maxBodyBytes, watch), safe);
      }
      return ask(deps, { routes, toForm: () => ({ adapt, call }) }, signal);
    },
    async close() {
      await Promise.all(endpoints.map((endpoint) => endpoint.close()));
    },
  };
}

/** Both are sent as headers, where a line break would be an attack and anything odd an error without a name. */
function checkHeader(apiKey: string, imageKeyHeader: string | undefined): void {
  if (!/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new GatewayError("rejected", "The gateway's key must be one word of plain ASCII characters.");
  }
  if (imageKeyHeader !== undefined && !/^x-[a-z0-9-]+$/i.test(imageKeyHeader)) {
    throw new GatewayError("rejected", "The image key header must be the name of an x- header, like x-vendor-api-key.");
  }
}

/** The base without a trailing slash or version. Throws a `rejected` GatewayError unless it is a plain http(s) URL. */
export function readBaseUrl(text: string): string {
  const url = URL.parse(text.trim());
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new GatewayError("rejected", "The gateway's base address must be an http:// or https:// URL.");
  }
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw new GatewayError(
      "rejected",
      "The gateway's base address must have no user, password, query or fragment; the key is set on its own.",
    );
  }
  const path = url.pathname.replace(/\/+$/, "").replace(/\/v1(?:beta)?$/, "");
  return `${url.origin}${path.replace(/\/+$/, "")}`;
}

/** Model ids of `{data: […]}`, `{models: […]}` or a bare list, of ids or of objects with `id`, `name` or `model`. */
export function parseModelIds(json: string, safe: SafeText): string[] {
  const value = parseJson(json);
  if (hasError(value)) throw toStreamError(value, safe);
  const list: unknown = isRecord(value) ? (value.data ?? value.models) : value;
  if (!Array.isArray(list)) {
    throw new GatewayError(
      "malformed",
      "The gateway's model list is not a list: check that its base address is right.",
    );
  }
  const ids = list.map(readId).filter((id) => id !== "");
  return [...new Set(ids)];
}

function readId(entry: unknown): string {
  const id: unknown = isRecord(entry) ? (entry.id ?? entry.name ?? entry.model) : entry;
  // Some lists name a model by its resource path, which is not its id.
  return typeof id === "string" ? id.replace(/^models\//, "") : "";
}
