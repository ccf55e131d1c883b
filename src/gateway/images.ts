import { type AskDeps, ask, type CallOptions, type Endpoint, type Question, type Route } from "./ask.ts";
import { type Beliefs, createBeliefs } from "./beliefs.ts";
import { ELSEWHERE_STATUSES, GatewayError, type GatewayErrorKind, isUndrawn } from "./errors.ts";
import { type GeneratedImage, isFiltered, LINK_ONLY, parseImage } from "./image-answer.ts";
import {
  BASE64,
  type Chosen,
  checkImageRequest,
  findRefusedField,
  IMAGE_WAYS,
  type ImageApi,
  type ImageCall,
  type ImageRequest,
  type ImageWay,
  isOtherWay,
} from "./image-ways.ts";
import type { SafeText } from "./safe-text.ts";
import { readBody, type Send } from "./transport.ts";
import { createWatch } from "./watch.ts";

/** The result of requests without a prompt, which create no images. */
export interface ImageProbe {
  /** The way in which the gateway creates images; undefined if it supports no way. */
  way: ImageWay | undefined;
  refusals: ReadonlyArray<{ way: ImageWay; error: GatewayError }>;
  failure?: GatewayError;
}

export interface ImageDeps extends AskDeps {
  safe: SafeText;
  /** The header for the key on Google's path if the gateway accepts no Bearer token there. */
  keyHeader: string | undefined;
  /** The only API to use for images. Undefined: Palaver finds out which API works for each model. */
  imageApi: ImageApi | undefined;
}

/** The limit for the text next to the image. */
const MAX_TEXT_BYTES = 1_048_576;
/** Palaver asks another route only after these failures. After others, an image may exist and cost something. */
const NOT_DRAWN: ReadonlySet<GatewayErrorKind> = new Set(["unreachable", "rate-limited", "overloaded"]);

export function createImageClient(deps: ImageDeps) {
  const { limits, safe, log, keyHeader } = deps;
  const sendByGoogle = createGoogleSend(keyHeader);
  const maxBytes = Math.ceil((limits.maxImageBytes * 4) / 3) + MAX_TEXT_BYTES;
  const known = new Map<string, Known>();
  const ways = IMAGE_WAYS.filter(({ name }) => deps.imageApi === undefined || name === deps.imageApi);

  function knownOf({ endpoint, model }: Route): Known {
    const name = `${endpoint.name} ${model}`;
    const own = known.get(name) ?? { way: undefined, givesLinks: false, refused: createBeliefs() };
    known.set(name, own);
    return own;
  }

  async function send({ endpoint, model }: Route, call: ImageCall, watch: Parameters<Send>[1]): Promise<string> {
    const whole = { method: "POST", model, ...call } as const;
    const body = await (call.api === "google" ? sendByGoogle(endpoint, whole, watch) : endpoint.send(whole, watch));
    return readBody(body, maxBytes, watch);
  }

  return {
    async generate(
      request: ImageRequest,
      routes: Question<GeneratedImage>["routes"],
      options: CallOptions,
      signal: AbortSignal,
    ): Promise<GeneratedImage> {
      const startedMs = performance.now();
      checkImageRequest(request);
      let way = "";
      let own: Drawing | undefined;
      const question: Question<GeneratedImage> = {
        routes,
        options,
        isDown: (error) => (NOT_DRAWN.has(error.kind) && isUndrawn(error)) || ELSEWHERE_STATUSES.has(error.status),
        texts: () => [request.prompt],
        toForm(route) {
          const drawing = createDrawing({ ...request, model: route.model }, ways, knownOf(route));
          own ??= drawing;
          return {
            adapt: drawing.adapt,
            async call(watch) {
              const call = await drawing.toCall(watch.signal);
              const text = await send(route, call, watch);
              const image = await parseImage(text, limits.maxImageBytes, safe);
              const unmet = drawing.succeed();
              way = drawing.label();
              return unmet.length === 0 ? image : { ...image, unmet };
            },
          };
        },
      };
      const image = await ask(deps, question, signal).catch((error: unknown) => {
        throw own?.explain(error) ?? error;
      });
      const totalMs = Math.round(performance.now() - startedMs);
      const { mimeType, bytes } = image;
      log.info({ model: request.model, way, mimeType, sizeBytes: bytes.length, totalMs }, "picture complete");
      return image;
    },
    /** Tries each way with a request without a prompt. Rejects only with the signal's reason. */
    async probe(route: Route, signal: AbortSignal): Promise<ImageProbe> {
      const refusals: Array<{ way: ImageWay; error: GatewayError }> = [];
      let failure: GatewayError | undefined;
      for (const way of ways) {
        const watch = createWatch(signal, limits.totalMs);
        try {
          await send(route, way.toProbe(route.model), watch);
          return { way, refusals };
        } catch (error) {
          signal.throwIfAborted();
          if (!(error instanceof GatewayError)) throw error;
          if (error.status === 401) failure ??= error;
          if (isOtherWay(error) || error.status === 401) refusals.push({ way, error });
          else return error.kind === "rejected" ? { way, refusals } : { way: undefined, refusals, failure: error };
        } finally {
          watch.end();
        }
      }
      return { way: undefined, refusals, ...(failure !== undefined && { failure }) };
    },
  };
}

interface Known {
  way: ImageWay | undefined;
  /** True if the model sends a link unless the request asks for bytes. */
  givesLinks: boolean;
  refused: Beliefs<string>;
}

type Drawing = ReturnType<typeof createDrawing>;

/** Sends one request to one route. If one way of creating images fails, tries the next. */
function createDrawing(request: ImageRequest, ways: readonly ImageWay[], known: Known) {
  const [first, ...others] = [...new Set([known.way ?? ways[0], ...ways])];
  if (first === undefined) throw new Error("There is no way to create images.");
  let way = first;
  let { givesLinks } = known;
  const refused = new Set<string>();
  const failures: Array<{ way: ImageWay; error: unknown }> = [];

  function choose(): Chosen {
    const unusable = new Set([...refused, ...known.refused.all()]);
    const choices = { ...way.choices(request), ...(givesLinks && way.name === "images" && BASE64) };
    const chosen = Object.entries(choices).map(
      ([name, values]) => [name, values.find((value) => !unusable.has(`${name}=${value}`))] as const,
    );
    return Object.fromEntries(chosen.filter((field): field is [string, string] => field[1] !== undefined));
  }

  function goOn(error: unknown): boolean {
    const next = others.shift();
    failures.push({ way, error });
    if (next === undefined) return false;
    way = next;
    return true;
  }

  return {
    label: () => way.label,
    async toCall(signal: AbortSignal): Promise<ImageCall> {
      for (;;) {
        try {
          return await way.toCall(request, choose(), signal);
        } catch (error) {
          signal.throwIfAborted();
          // A way that has not worked yet can fail because it needs a link. The next way may not need one.
          if (error instanceof GatewayError || known.way === way || !goOn(error)) throw error;
        }
      }
    },
    /** Changes the request after a refusal without an image. Returns false if no change can help. */
    adapt(refusal: GatewayError): boolean {
      if (isFiltered(refusal)) return false;
      const chosen = choose();
      if (refusal.code === LINK_ONLY) {
        givesLinks = true;
        return choose()["response_format"] !== chosen["response_format"];
      }
      const field = findRefusedField(refusal, chosen);
      if (field !== undefined) {
        refused.add(`${field}=${chosen[field]}`);
        return true;
      }
      // Google accepts the key in its own header on this path, and as a Bearer token on OpenAI's paths.
      const mayBeOther = refusal.status === 401 && known.way === undefined;
      return (isOtherWay(refusal) || mayBeOther) && goOn(refusal);
    },
    /** Remembers the way that worked. Returns which of the requested ratio and size the image does not have. */
    succeed(): string[] {
      known.way = way;
      known.givesLinks = givesLinks;
      for (const field of refused) known.refused.add(field);
      return way.findUnmet(request, choose());
    },
    /** Returns the most informative error after all ways failed. */
    explain(error: unknown): unknown {
      if (!failures.some((failure) => failure.error === error)) return error;
      // Prefers the refusal of the way that worked before, then a missing link or a refused key, then a reason that
      // people can fix.
      const told =
        failures.find((failure) => failure.way === known.way) ??
        failures.find(({ error: one }) => !(one instanceof GatewayError) || one.status === 401) ??
        failures.find(({ error: one }) => one instanceof GatewayError && one.reason !== undefined);
      if (told !== undefined || !(error instanceof GatewayError) || failures.length === 1) return told?.error ?? error;
      const tried = failures.map((failure) => `${failure.way.label} (${toStatus(failure.error)})`).join(", ");
      return new GatewayError(
        "rejected",
        `The gateway doesn't create images with the model ${request.model}. Tried: ${tried}.`,
        {
          cause: error,
          quote: error.quote,
          status: error.status,
          type: NO_WAY,
        },
      );
    },
  };
}

/** The error's type if the gateway cannot create images with this model. */
export const NO_WAY = "no_way";

function toStatus(error: unknown): string {
  return error instanceof GatewayError ? String(error.status ?? error.kind) : "no link";
}

type SendTo = (endpoint: Endpoint, ...call: Parameters<Send>) => ReturnType<Send>;

/** Sends the key as a Bearer token or, after a 401, in the configured header. Remembers which form worked. */
function createGoogleSend(keyHeader: string | undefined): SendTo {
  const usesHeader = new Set<Endpoint>();

  return async (endpoint, call, watch) => {
    if (!usesHeader.has(endpoint)) {
      try {
        return await endpoint.send(call, watch);
      } catch (error) {
        if (!isUnauthorized(error)) throw error;
        if (keyHeader === undefined) throw withHint(error);
      }
    }
    try {
      const body = await endpoint.send({ ...call, keyHeader }, watch);
      usesHeader.add(endpoint);
      return body;
    } catch (error) {
      if (isUnauthorized(error)) usesHeader.delete(endpoint);
      throw error;
    }
  };
}

function withHint(error: GatewayError): GatewayError {
  const hint = "If it expects the image key in a separate header, set GATEWAY_IMAGE_KEY_HEADER.";
  const { kind, logMessage, quote } = error;
  return new GatewayError(kind, `${logMessage} ${hint}`, { cause: error, quote, status: 401 });
}

function isUnauthorized(error: unknown): error is GatewayError {
  return error instanceof GatewayError && error.status === 401;
}
