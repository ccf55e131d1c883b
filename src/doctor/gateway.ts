import { pino } from "pino";
import type { GatewayConfig } from "../config/config.ts";
import type { ChatCompletionChunk } from "../gateway/chunks.ts";
import { createGateway, type Gateway, type GatewayOptions, type ProbedGateway } from "../gateway/client.ts";
import { GatewayError, type GatewayErrorKind } from "../gateway/errors.ts";
import { checkModels, hasNoList, type NamedModels, namedModels, toFinding, toSecond } from "../models/health.ts";
import type { Finding } from "../port/finding.ts";
import { checkOllama } from "./ollama.ts";

/** Someone is waiting for the result, so nothing is retried. */
const LIMITS = { connectMs: 5_000, firstTokenMs: 30_000, idleMs: 10_000, totalMs: 45_000, attempts: 1 };
/**
 * A question without a token limit, because some models reject small limits. `MAX_HEARD_CHARS` aborts a long answer.
 */
const QUESTION = { messages: [{ role: "user" as const, content: "Say yes." }] };
const MAX_HEARD_CHARS = 2_000;

export interface GatewayCheckOptions {
  /** If true, asks each model one question, which costs a few tokens. */
  mayChat: boolean;
  /** Maximum estimated number of history tokens in a request. */
  historyMaxTokens: number;
}

/**
 * Checks the gateway's address, key, models, one answer, and how it creates images; then checks the fallback. Creates
 * no image, because images cost more.
 */
export async function checkGateway(
  config: GatewayConfig,
  { mayChat, historyMaxTokens }: GatewayCheckOptions,
  signal: AbortSignal,
): Promise<Finding[]> {
  const { baseUrl, apiKey, headers, extraBody, imageApi, imageKeyHeader, fallback } = config;
  if (baseUrl === undefined) {
    return [{ ok: true, what: "The embedded sandbox answers. It needs no key and is not a real model." }];
  }
  const shared = { extraBody, mayChat, historyMaxTokens };
  const models = namedModels(config);
  const own = { baseUrl, apiKey, headers, imageApi, imageKeyHeader };
  const first = await checkOne({ ...own, models: models.first, ...shared }, signal);
  if (fallback.gateway === undefined) return first;
  const second = await checkOne({ ...fallback.gateway, models: models.second, ...shared }, signal);
  return [...first, ...second.map(toSecond)];
}

interface Tried extends OpenOptions, GatewayCheckOptions {
  extraBody: GatewayConfig["extraBody"];
  /** The configured models by variable. Chat models get a question. */
  models: NamedModels;
}

async function checkOne(
  { models, mayChat, historyMaxTokens, ...options }: Tried,
  signal: AbortSignal,
): Promise<Finding[]> {
  const gateway = open(options);
  try {
    const { findings, unlisted, error } = await checkModels(gateway, options.baseUrl, models, signal);
    if (error?.kind === "unreachable" || error?.status === 401) return findings;
    const named = [models.CHAT_MODEL, models.CHAT_FALLBACK_MODEL].filter((name) => name !== undefined);
    // Skip models that the gateway does not list, because the operator must first correct their names.
    const asked = named.filter((name) => !unlisted.includes(name));
    const answers: Finding[] = [];
    for (const model of asked) answers.push(await checkChat(gateway, model, mayChat, signal));
    const pictures =
      models.IMAGE_MODEL === undefined ? [] : [await checkPictures(gateway, models.IMAGE_MODEL, options, signal)];
    const hasAnswered = mayChat && answers.some(({ ok }) => ok);
    // Ollama reports the context window only now, because the question has loaded the model.
    const windows = asked.map((model) => checkOllama({ baseUrl: options.baseUrl, model, historyMaxTokens }, signal));
    return [
      ...(error !== undefined && hasAnswered ? [toUnlisted(options.baseUrl)] : findings),
      ...answers,
      ...(await Promise.all(windows)).flat(),
      ...pictures,
    ];
  } finally {
    await gateway.close();
  }
}

function toUnlisted(baseUrl: string): Finding {
  const what = `${baseUrl} does not list its models, so their names cannot be checked. It does answer questions.`;
  return { ok: true, what };
}

/** Returns the models that the key can use, or findings if the gateway does not list them. */
export async function listModels(
  { baseUrl, apiKey, headers, extraBody }: GatewayConfig,
  signal: AbortSignal,
): Promise<{ models: readonly string[]; findings: Finding[] }> {
  if (baseUrl === undefined) return { models: [], findings: [] };
  const gateway = open({ baseUrl, apiKey, headers, extraBody });
  try {
    return { models: await gateway.listModels(signal), findings: [] };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const isUnlisted = error.status !== undefined && hasNoList(error);
    const what = "The gateway does not list its models: type their names.";
    return { models: [], findings: [isUnlisted ? { ok: true, what } : toFinding(error)] };
  } finally {
    await gateway.close();
  }
}

type OpenOptions = Pick<GatewayOptions, "baseUrl" | "apiKey" | "headers" | "extraBody" | "imageApi" | "imageKeyHeader">;

/** Opens a gateway that asks for token usage, as the service does if answers report none. */
function open({ extraBody, ...options }: OpenOptions): ProbedGateway {
  const all = { stream_options: { include_usage: true }, ...extraBody?.all };
  const models = extraBody?.models ?? new Map();
  return createGateway({ ...options, extraBody: { all, models }, limits: LIMITS, log: pino({ level: "silent" }) });
}

async function checkChat(gateway: Gateway, model: string, mayChat: boolean, signal: AbortSignal): Promise<Finding> {
  if (!mayChat) return { ok: true, what: "The model was not asked a question (--no-chat)." };
  try {
    const usage = await hearAnswer(gateway, model, signal);
    return {
      ok: true,
      what: `${model} answers.${usage}`,
    };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const { what } = toFinding(error);
    return { ok: false, what: `${model} does not answer. ${what}`, fix: CHAT_FIXES[error.kind] ?? "Try again later." };
  }
}

/** Reads one answer. Resolves to a sentence about its token usage; "" if the answer was aborted. */
async function hearAnswer(gateway: Gateway, model: string, signal: AbortSignal): Promise<string> {
  const enough = new AbortController();
  let chars = 0;
  let hasBegun = false;
  let hasUsage = false;
  const onChunk = ({ choices, usage }: ChatCompletionChunk) => {
    const { content, reasoning } = choices[0]?.delta ?? {};
    hasBegun = true;
    hasUsage ||= usage !== undefined && usage !== null;
    chars += (content ?? "").length + (reasoning ?? "").length;
    if (chars > MAX_HEARD_CHARS) enough.abort();
  };
  try {
    await gateway.streamChat({ model, ...QUESTION }, AbortSignal.any([signal, enough.signal]), { onChunk });
  } catch (error) {
    if (!hasBegun || signal.aborted) throw error;
    return "";
  }
  if (hasUsage) return " The gateway reports token usage, so quotas and costs are exact.";
  return " The gateway reports no token usage, so quotas and costs are estimated.";
}

/** Reports which request creates images with this model. It sends no prompt, so the gateway creates no image. */
async function checkPictures(
  gateway: ProbedGateway,
  model: string,
  { imageApi }: OpenOptions,
  signal: AbortSignal,
): Promise<Finding> {
  const { way, refusals, failure } = await gateway.probeImages(model, signal);
  const subject = `IMAGE_MODEL ${model}`;
  const tried = refusals.map((one) => `${one.way.label} (${one.error.status ?? one.error.kind})`).join(", ");
  if (way !== undefined) {
    const others = tried === "" ? "" : ` It does not accept ${tried}.`;
    return { ok: true, what: `${subject} creates images through ${way.label}.${others} ${FREE}` };
  }
  if (failure?.kind === "unauthorized" || failure?.kind === "unreachable") {
    return { ...toFinding(failure), what: `${subject} cannot create images. ${toFinding(failure).what}` };
  }
  if (failure !== undefined) {
    const what = `${subject}: the first image will show which request works. ${toFinding(failure).what} ${FREE}`;
    return { ok: true, what };
  }
  const fix =
    imageApi === undefined ? "Choose a model that creates images, or leave IMAGE_MODEL empty." : "Set IMAGE_API=auto.";
  return { ok: false, what: `${subject} cannot create images: the gateway does not accept ${tried}.`, fix };
}

const FREE = "The check used only empty requests; no image was created.";

const CHAT_FIXES: Partial<Record<GatewayErrorKind, string>> = {
  unauthorized: "Set CHAT_MODEL to a model that the key can use.",
  rejected: "Set CHAT_MODEL to another model: this one may not be made for conversations.",
};
