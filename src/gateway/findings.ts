import type { Finding } from "../port/finding.ts";
import type { Gateway } from "./client.ts";
import { GatewayError, type GatewayErrorKind } from "./errors.ts";
import { nearModels } from "./model-list.ts";

const FIXES: Partial<Record<GatewayErrorKind, string>> = {
  unreachable: "Check GATEWAY_BASE_URL, and that the gateway runs.",
  unauthorized: "Check GATEWAY_API_KEY, and which models it may use.",
  rejected: "Check that GATEWAY_BASE_URL is the gateway's address up to but not including /v1.",
  malformed: "Check that GATEWAY_BASE_URL is the gateway's address up to but not including /v1.",
  "rate-limited": "Try again later.",
  overloaded: "Try again later.",
};

export interface ConfiguredModels {
  chatModel: string;
  /** Undefined: nothing is drawn. */
  imageModel: string | undefined;
}

export interface ListFindings {
  /** Of the gateway first, then of each configured model; of the gateway alone where there is an error. */
  findings: Finding[];
  /** The models that it lists; undefined where there is an error. */
  models?: readonly string[];
  error?: GatewayError;
}

/** Asks for the list of models: whether the gateway answers, takes the key, and offers what is configured. */
export async function checkModels(
  gateway: Pick<Gateway, "listModels">,
  baseUrl: string,
  { chatModel, imageModel }: ConfiguredModels,
  signal: AbortSignal,
): Promise<ListFindings> {
  try {
    const models = await gateway.listModels(signal);
    const findings = [
      { ok: true, what: `${baseUrl} answers and takes the key, which may use ${countModels(models.length)}.` },
      checkListed("CHAT_MODEL", chatModel, models),
      ...(imageModel === undefined ? [] : [checkListed("IMAGE_MODEL", imageModel, models)]),
    ];
    return { findings, models };
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

export function toFinding({ message, kind }: GatewayError): Finding {
  const fix = FIXES[kind];
  return { ok: false, what: message, ...(fix !== undefined && { fix }) };
}

function countModels(count: number): string {
  return count === 1 ? "one model" : `${count} models`;
}
