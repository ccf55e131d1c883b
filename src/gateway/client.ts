import type { Logger } from "pino";
import { ask, type CallOptions, type Endpoint, type Route } from "./ask.ts";
import { createBreaker } from "./breaker.ts";
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

export type { CallOptions, Fallback, RetryNotice } from "./ask.ts";
export type { StreamOptions } from "./chat.ts";
export type { GatewayLimits } from "./limits.ts";

/**
 * Every method rejects with a GatewayError or, if the signal aborts, with the signal's reason. Until the first part of
 * the answer arrives, it retries passing failures and changes refused requests.
 */
export interface Gateway {
  /**
   * Passes chunks on as they arrive. Resolves when the answer ended with a `finish_reason` or `[DONE]`, and rejects
   * otherwise; an error of `onChunk` also rejects. Aborting closes the connection within a second. A retry can follow
   * an attempt that fails before the first text or tool call. It does not take back the chunks of that attempt.
   */
  streamChat(request: ChatRequest, signal: AbortSignal, options: StreamOptions): Promise<void>;
  /** Lists the ids of the models that the key can use at one of the gateways. */
  listModels(signal: AbortSignal, which?: Endpoint["name"]): Promise<string[]>;
  /** Also rejects as `rejected` if the model refuses to create the image; the message quotes its reason. */
  generateImage(request: ImageRequest, signal: AbortSignal, options?: CallOptions): Promise<GeneratedImage>;
  close(): Promise<void>;
}

export interface ProbedGateway extends Gateway {
  /** Finds out how a model creates images, with requests that create none. */
  probeImages(model: string, signal: AbortSignal): Promise<ImageProbe>;
}

export interface GatewayAddress {
  /** Can end with a slash or `/v1`. */
  baseUrl: string;
  apiKey: string;
  /** Sent with every request. They replace Palaver's headers of the same name. */
  headers?: Readonly<Record<string, string>> | undefined;
}

export interface GatewayOptions extends GatewayAddress {
  /** The header for the key if the image endpoint responds with 401 to a Bearer token. */
  imageKeyHeader?: string | undefined;
  /** The API for image models; absent: the client finds out which API each model supports. */
  imageApi?: ImageApi | undefined;
  /** The gateway to ask while the first is down, for the same model or for the fallback model. */
  second?: GatewayAddress | undefined;
  /** The model to ask while another chat model is down. */
  fallbackModel?: string | undefined;
  extraBody?: ExtraBody;
  log: Logger;
  limits?: Partial<GatewayLimits>;
  /** Called with the number of a gateway's paused models when the number changes. */
  onPaused?: (name: Endpoint["name"], count: number) => void;
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
  const { extraBody = { all: {}, models: new Map() }, onPaused } = options;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const safe = createSafeText([options, second].flatMap((address) => address?.apiKey ?? []));
  const deps = { limits, log, safe, extraBody, onAnswered };

  function open(name: Endpoint["name"], { baseUrl, apiKey, headers }: GatewayAddress) {
    checkHeader(apiKey, imageKeyHeader);
    const transport = createTransport({ baseUrl: readBaseUrl(baseUrl), apiKey, headers, limits, safe });
    const breaker = createBreaker(limits, { onPaused: (count) => onPaused?.(name, count) });
    return { name, breaker, ...transport };
  }

  const first = open("first", options);
  const other = second && open("second", second);
  const endpoints = other === undefined ? ([first] as const) : ([first, other] as const);
  const streamChat = createStreamChat(deps);
  const images = createImageClient({ ...deps, keyHeader: imageKeyHeader, imageApi });

  /** Returns the requested route first, then the routes with the fallback model and the second gateway. */
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
      // This request is for no model, so its failures pause no model.
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

/** Both values are sent as headers: a line break would be an attack, and other characters fail without a reason. */
function checkHeader(apiKey: string, imageKeyHeader: string | undefined): void {
  if (!/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new GatewayError("rejected", "The gateway's key must be one word of plain ASCII characters.");
  }
  if (imageKeyHeader !== undefined && !/^x-[a-z0-9-]+$/i.test(imageKeyHeader)) {
    throw new GatewayError("rejected", "The image key header must be the name of an x- header, like x-vendor-api-key.");
  }
}

/** Returns a plain http(s) URL without trailing slash and version. Throws a `rejected` GatewayError for any other. */
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

/** Reads model ids from `{data: […]}`, `{models: […]}` or a list of ids or of objects with `id`, `name` or `model`. */
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
  // Some lists contain resource paths instead of ids.
  return typeof id === "string" ? id.replace(/^models\//, "") : "";
}
