import { pino } from "pino";
import type { GatewayConfig } from "../config/config.ts";
import type { ChatCompletionChunk } from "../gateway/chunks.ts";
import { createGateway, type Gateway, type GatewayOptions, type ProbedGateway } from "../gateway/client.ts";
import { GatewayError, type GatewayErrorKind } from "../gateway/errors.ts";
import { checkModels, hasNoList, type NamedModels, namedModels, toFinding, toSecond } from "../models/health.ts";
import type { Finding } from "../port/finding.ts";

/** A person waits for it, so nothing is tried twice. */
const LIMITS = { connectMs: 5_000, firstTokenMs: 30_000, idleMs: 10_000, totalMs: 45_000, attempts: 1 };
/** Without a bound: some models take none so small, and a long answer is left. */
const QUESTION = { messages: [{ role: "user" as const, content: "Say yes." }] };
/** A longer answer is left before its end. */
const MAX_HEARD_CHARS = 2_000;

export interface GatewayCheckOptions {
  /** Allows one question, which costs a few tokens. */
  mayChat: boolean;
}

/**
 * Tries the gateway: its address, the key, the models, an answer, the way in which it draws; and what answers while it is
 * down. Draws nothing, as pictures cost more.
 */
export async function checkGateway(
  config: GatewayConfig,
  { mayChat }: GatewayCheckOptions,
  signal: AbortSignal,
): Promise<Finding[]> {
  const { baseUrl, apiKey, headers, extraBody, imageApi, imageKeyHeader, fallback } = config;
  if (baseUrl === undefined) {
    return [{ ok: true, what: "The embedded sandbox answers. It needs no key and is no real model." }];
  }
  const shared = { extraBody, mayChat };
  const models = namedModels(config);
  const own = { baseUrl, apiKey, headers, imageApi, imageKeyHeader };
  const first = await checkOne({ ...own, models: models.first, ...shared }, signal);
  if (fallback.gateway === undefined) return first;
  const second = await checkOne({ ...fallback.gateway, models: models.second, ...shared }, signal);
  return [...first, ...second.map(toSecond)];
}

interface Tried extends OpenOptions {
  extraBody: GatewayConfig["extraBody"];
  /** The configured models, by the variables that name them. The ones for conversations are asked a question. */
  models: NamedModels;
  mayChat: boolean;
}

async function checkOne({ models, mayChat, ...options }: Tried, signal: AbortSignal): Promise<Finding[]> {
  const gateway = open(options);
  try {
    const { findings, error } = await checkModels(gateway, options.baseUrl, models, signal);
    if (error?.kind === "unreachable" || error?.status === 401) return findings;
    const asked = [models.CHAT_MODEL, models.CHAT_FALLBACK_MODEL].filter((name) => name !== undefined);
    const answers: Finding[] = [];
    for (const model of asked) answers.push(await checkChat(gateway, model, mayChat, signal));
    const pictures =
      models.IMAGE_MODEL === undefined ? [] : [await checkPictures(gateway, models.IMAGE_MODEL, options, signal)];
    const hasAnswered = mayChat && answers.some(({ ok }) => ok);
    return [
      ...(error !== undefined && hasAnswered ? [toUnlisted(options.baseUrl)] : findings),
      ...answers,
      ...pictures,
    ];
  } finally {
    await gateway.close();
  }
}

function toUnlisted(baseUrl: string): Finding {
  const what = `${baseUrl} does not list its models, so their names cannot be checked. It answers questions all the same.`;
  return { ok: true, what };
}

/** The models that the key may use; with findings, and none, where the gateway does not tell. */
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
    const what = "The gateway does not list its models: write their names yourself.";
    return { models: [], findings: [isUnlisted ? { ok: true, what } : toFinding(error)] };
  } finally {
    await gateway.close();
  }
}

type OpenOptions = Pick<GatewayOptions, "baseUrl" | "apiKey" | "headers" | "extraBody" | "imageApi" | "imageKeyHeader">;

/** Asks for the token usage, as the service does once an answer has come without it. */
function open({ extraBody, ...options }: OpenOptions): ProbedGateway {
  const all = { stream_options: { include_usage: true }, ...extraBody?.all };
  const models = extraBody?.models ?? new Map();
  return createGateway({ ...options, extraBody: { all, models }, limits: LIMITS, log: pino({ level: "silent" }) });
}

async function checkChat(gateway: Gateway, model: string, mayChat: boolean, signal: AbortSignal): Promise<Finding> {
  if (!mayChat) return { ok: true, what: "No question was asked (--no-chat)." };
  try {
    const usage = await hearAnswer(gateway, model, signal);
    return {
      ok: true,
      what: `${model} answers.${usage} That was a question of a few tokens; --no-chat leaves it out.`,
    };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const { what } = toFinding(error);
    return { ok: false, what: `${model} does not answer. ${what}`, fix: CHAT_FIXES[error.kind] ?? "Try again later." };
  }
}

/** Hears one answer. Resolves to a sentence on its token usage, "" if the answer was left before its end. */
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

/** Says how a model is asked to draw. The requests that find that out say nothing to draw. */
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
    const others = tried === "" ? "" : ` It does not take ${tried}.`;
    return { ok: true, what: `${subject} is asked for pictures by ${way.label}.${others} ${FREE}` };
  }
  if (failure?.kind === "unauthorized" || failure?.kind === "unreachable") {
    return { ...toFinding(failure), what: `${subject} cannot be asked for pictures. ${toFinding(failure).what}` };
  }
  if (failure !== undefined) {
    const what = `${subject}: the first picture will show how it is asked. ${toFinding(failure).what} ${FREE}`;
    return { ok: true, what };
  }
  const fix = imageApi === undefined ? "Choose a model that draws, or leave IMAGE_MODEL empty." : "Set IMAGE_API=auto.";
  return { ok: false, what: `${subject} cannot be asked for pictures: the gateway does not take ${tried}.`, fix };
}

const FREE = "Empty requests showed that; nothing was drawn.";

const CHAT_FIXES: Partial<Record<GatewayErrorKind, string>> = {
  unauthorized: "Choose a model in CHAT_MODEL that the key may use.",
  rejected: "Choose another model in CHAT_MODEL: this one may be none for conversations.",
};
