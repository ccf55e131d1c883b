import { pino } from "pino";
import type { GatewayConfig } from "../config/config.ts";
import { createGateway, type Gateway, type GatewayOptions } from "../gateway/client.ts";
import { GatewayError, type GatewayErrorKind } from "../gateway/errors.ts";
import { checkModels, type NamedModels, namedModels, toFinding, toSecond } from "../gateway/health.ts";
import type { Finding } from "../port/finding.ts";

/** A person waits for it, so nothing is tried twice. */
const LIMITS = { connectMs: 5_000, firstTokenMs: 30_000, idleMs: 10_000, totalMs: 45_000, attempts: 1 };
/** Without a bound: some models take none so small, and the answer is left at its beginning. */
const QUESTION = { messages: [{ role: "user" as const, content: "Say yes." }] };

export interface GatewayCheckOptions {
  /** Allows one question, which costs a few tokens. */
  mayChat: boolean;
}

/**
 * Tries the gateway: its address, the key, the models, the beginning of an answer; and in the same way what answers while it is
 * down. Draws nothing, as pictures cost more.
 */
export async function checkGateway(
  config: GatewayConfig,
  { mayChat }: GatewayCheckOptions,
  signal: AbortSignal,
): Promise<Finding[]> {
  const { baseUrl, apiKey, extraBody, fallback } = config;
  if (baseUrl === undefined) {
    return [{ ok: true, what: "The embedded sandbox answers. It needs no key and is no real model." }];
  }
  const shared = { extraBody, mayChat };
  const models = namedModels(config);
  const first = await checkOne({ baseUrl, apiKey, models: models.first, ...shared }, signal);
  if (fallback.gateway === undefined) return first;
  const second = await checkOne({ ...fallback.gateway, models: models.second, ...shared }, signal);
  return [...first, ...second.map(toSecond)];
}

interface Tried {
  baseUrl: string;
  apiKey: string;
  extraBody: GatewayConfig["extraBody"];
  /** The configured models, by the variables that name them. The ones for conversations are asked a question. */
  models: NamedModels;
  mayChat: boolean;
}

async function checkOne({ models, mayChat, ...options }: Tried, signal: AbortSignal): Promise<Finding[]> {
  const gateway = open(options);
  try {
    const listed = await checkModels(gateway, options.baseUrl, models, signal);
    const isHopeless = listed.error?.kind === "unreachable" || listed.error?.kind === "unauthorized";
    const asked = isHopeless
      ? []
      : [models.CHAT_MODEL, models.CHAT_FALLBACK_MODEL].filter((name) => name !== undefined);
    const answers: Finding[] = [];
    for (const model of asked) answers.push(await checkChat(gateway, model, mayChat, signal));
    return [...listed.findings, ...answers];
  } finally {
    await gateway.close();
  }
}

/** The models that the key may use; with findings, and none, where the gateway does not tell. */
export async function listModels(
  { baseUrl, apiKey, extraBody }: GatewayConfig,
  signal: AbortSignal,
): Promise<{ models: readonly string[]; findings: Finding[] }> {
  if (baseUrl === undefined) return { models: [], findings: [] };
  const gateway = open({ baseUrl, apiKey, extraBody });
  try {
    return { models: await gateway.listModels(signal), findings: [] };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return { models: [], findings: [toFinding(error)] };
  } finally {
    await gateway.close();
  }
}

function open(config: Pick<GatewayOptions, "baseUrl" | "apiKey" | "extraBody">) {
  return createGateway({ ...config, limits: LIMITS, log: pino({ level: "silent" }) });
}

async function checkChat(gateway: Gateway, model: string, mayChat: boolean, signal: AbortSignal): Promise<Finding> {
  if (!mayChat) return { ok: true, what: "No question was asked (--no-chat)." };
  try {
    await hearBeginning(gateway, model, signal);
    return { ok: true, what: `${model} answers. That was a question of a few tokens; --no-chat leaves it out.` };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const { what } = toFinding(error);
    return { ok: false, what: `${model} does not answer. ${what}`, fix: CHAT_FIXES[error.kind] ?? "Try again later." };
  }
}

/** Resolves when an answer begins, and leaves it there. */
async function hearBeginning(gateway: Gateway, model: string, signal: AbortSignal): Promise<void> {
  const begun = new AbortController();
  const onChunk = () => begun.abort();
  const answer = gateway.streamChat({ model, ...QUESTION }, AbortSignal.any([signal, begun.signal]), { onChunk });
  await answer.catch((error: unknown) => {
    if (!begun.signal.aborted) throw error;
  });
}

const CHAT_FIXES: Partial<Record<GatewayErrorKind, string>> = {
  unauthorized: "Choose a model in CHAT_MODEL that the key may use.",
  rejected: "Choose another model in CHAT_MODEL: this one may be none for conversations.",
};
