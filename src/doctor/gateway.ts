import { pino } from "pino";
import type { GatewayConfig } from "../config.ts";
import type { Finding } from "../finding.ts";
import { createGateway, type Gateway } from "../gateway/client.ts";
import { GatewayError, type GatewayErrorKind } from "../gateway/errors.ts";
import { nearModels } from "../model-list.ts";

/** A person waits for it, so nothing is tried twice. */
const LIMITS = { connectMs: 5_000, firstTokenMs: 30_000, idleMs: 10_000, totalMs: 45_000, attempts: 1 };
/** The cheapest question there is. */
const QUESTION = { messages: [{ role: "user" as const, content: "Say yes." }], max_tokens: 1 };

const FIXES: Partial<Record<GatewayErrorKind, string>> = {
  unreachable: "Check GATEWAY_BASE_URL, and that the gateway runs.",
  unauthorized: "Check GATEWAY_API_KEY, and which models it may use.",
  rejected: "Check that GATEWAY_BASE_URL is the gateway's address up to but not including /v1.",
  malformed: "Check that GATEWAY_BASE_URL is the gateway's address up to but not including /v1.",
  "rate-limited": "Try again later.",
  overloaded: "Try again later.",
};

export interface GatewayCheckOptions {
  /** Whether a question may be asked, which costs a few tokens. */
  mayChat: boolean;
}

/** Tries the gateway: its address, the key, the models, an answer of one token. Draws nothing, as pictures cost more. */
export async function checkGateway(
  config: GatewayConfig,
  { mayChat }: GatewayCheckOptions,
  signal: AbortSignal,
): Promise<Finding[]> {
  const { baseUrl, apiKey } = config;
  if (baseUrl === undefined) {
    return [{ ok: true, what: "The embedded sandbox answers. It needs no key and is no real model." }];
  }
  const gateway = createGateway({ baseUrl, apiKey, limits: LIMITS, log: pino({ level: "silent" }) });
  try {
    const listed = await checkModels(gateway, baseUrl, config, signal);
    const isHopeless = listed.error?.kind === "unreachable" || listed.error?.kind === "unauthorized";
    const answered = isHopeless ? [] : [await checkChat(gateway, config.chatModel, mayChat, signal)];
    return [...listed.findings, ...answered];
  } finally {
    await gateway.close();
  }
}

async function checkModels(gateway: Gateway, baseUrl: string, config: GatewayConfig, signal: AbortSignal) {
  try {
    const models = await gateway.listModels(signal);
    const { chatModel, imageModel } = config;
    const findings = [
      { ok: true, what: `${baseUrl} answers and takes the key, which may use ${countModels(models.length)}.` },
      checkListed("CHAT_MODEL", chatModel, models),
      ...(imageModel === undefined ? [] : [checkListed("IMAGE_MODEL", imageModel, models)]),
    ];
    return { findings };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return { findings: [toFinding(error)], error };
  }
}

function checkListed(variable: string, model: string, models: readonly string[]): Finding {
  if (models.includes(model)) return { ok: true, what: `${variable} ${model} is one of its models.` };
  const near = nearModels(model, models);
  const meant = near.length === 0 ? "" : ` Did you mean ${near.join(" or ")}?`;
  const some = models.slice(0, 10).join(", ");
  return {
    ok: false,
    what: `${variable} ${model} is not one of the models that the key may use.${meant}`,
    fix:
      some === ""
        ? "It lists none at all: ask whoever gave you the key which models it is for."
        : `Set it to one of them: ${some}${models.length > 10 ? ", …" : ""}.`,
  };
}

async function checkChat(gateway: Gateway, model: string, mayChat: boolean, signal: AbortSignal): Promise<Finding> {
  if (!mayChat) return { ok: true, what: "No question was asked (--no-chat)." };
  try {
    await gateway.streamChat({ model, ...QUESTION }, signal, { onChunk() {} });
    return { ok: true, what: `${model} answers. That was a question of a few tokens; --no-chat leaves it out.` };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const { what } = toFinding(error);
    return { ok: false, what: `${model} does not answer. ${what}`, fix: CHAT_FIXES[error.kind] ?? "Try again later." };
  }
}

const CHAT_FIXES: Partial<Record<GatewayErrorKind, string>> = {
  unauthorized: "Choose a model in CHAT_MODEL that the key may use.",
  rejected: "Choose another model in CHAT_MODEL: this one may be none for conversations.",
};

function toFinding({ message, kind }: GatewayError): Finding {
  const fix = FIXES[kind];
  return { ok: false, what: message, ...(fix !== undefined && { fix }) };
}

function countModels(count: number): string {
  return count === 1 ? "one model" : `${count} models`;
}
