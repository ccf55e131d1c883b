import type { Logger } from "pino";
import type { Gateway } from "../gateway/client.ts";
import { GatewayError, type GatewayErrorKind } from "../gateway/errors.ts";
import type { Finding } from "../port/finding.ts";
import { nearModels } from "./model-list.ts";

const FIXES: Partial<Record<GatewayErrorKind, string>> = {
  unreachable: "Check GATEWAY_BASE_URL, and that the gateway is running.",
  unauthorized: "Check GATEWAY_API_KEY, and which models it can use.",
  rejected: "Check that GATEWAY_BASE_URL is the gateway's address up to but not including /v1.",
  malformed: "Check that GATEWAY_BASE_URL is the gateway's address up to but not including /v1.",
  "rate-limited": "Try again later.",
  overloaded: "Try again later.",
};

interface ListFindings {
  /** The finding about the gateway, then one per configured model. If the gateway failed, only the first finding. */
  findings: Finding[];
  /** The configured models that are missing in the gateway's list. */
  unlisted: readonly string[];
  error?: GatewayError;
}

/** The configured models by the variables that name them. A model is undefined if its variable is not set. */
export type NamedModels = Partial<Record<"CHAT_MODEL" | "CHAT_FALLBACK_MODEL" | "IMAGE_MODEL", string | undefined>>;

interface ConfiguredModels {
  chatModel: string;
  /** Undefined: images are off. */
  imageModel: string | undefined;
  fallback: { model: string | undefined };
}

export function namedModels({ chatModel, imageModel, fallback: { model } }: ConfiguredModels) {
  const first: NamedModels = { CHAT_MODEL: chatModel, CHAT_FALLBACK_MODEL: model, IMAGE_MODEL: imageModel };
  const second: NamedModels = model === undefined ? { CHAT_MODEL: chatModel } : { CHAT_FALLBACK_MODEL: model };
  return { first, second };
}

/** Makes a finding name the second gateway's variables. */
export function toSecond({ ok, what, fix }: Finding): Finding {
  const own = fix?.replaceAll(/GATEWAY_(?=BASE_URL|API_KEY)/g, "GATEWAY_FALLBACK_");
  return { ok, what: `Second gateway: ${what}`, ...(own !== undefined && { fix: own }) };
}

/** Requests the list of models. Checks that the gateway responds, accepts the key and offers the configured models. */
export async function checkModels(
  gateway: Pick<Gateway, "listModels">,
  baseUrl: string,
  configured: NamedModels,
  signal: AbortSignal,
): Promise<ListFindings> {
  try {
    const models = await gateway.listModels(signal);
    const entries = entriesOf(configured);
    const findings = [
      { ok: true, what: `${baseUrl} answers and accepts the key, which can use ${countModels(models.length)}.` },
      ...entries.map(([variable, model]) => checkListed(variable, model, models)),
    ];
    return { findings, unlisted: entries.flatMap(([, model]) => (models.includes(model) ? [] : [model])) };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return { findings: [toFinding(error)], unlisted: [], error };
  }
}

function entriesOf(models: NamedModels): Array<[variable: string, model: string]> {
  return Object.entries(models).filter((entry): entry is [string, string] => entry[1] !== undefined);
}

function checkListed(variable: string, model: string, models: readonly string[]): Finding {
  if (models.includes(model)) return { ok: true, what: `${variable} ${model} is one of its models.` };
  const near = nearModels(model, models);
  const meant = near.length === 0 ? "" : ` Did you mean ${near.join(" or ")}?`;
  const some = models.slice(0, 10).join(", ");
  return {
    ok: false,
    what: `${describeUnlisted(variable, model)}${meant}`,
    fix:
      some === ""
        ? "It lists no models: ask the person who gave you the key which models it is for."
        : `Set it to one of them: ${some}${models.length > 10 ? ", …" : ""}.`,
  };
}

function describeUnlisted(variable: string, model: string): string {
  return `${variable} ${model} is not one of the models that the key can use.`;
}

/** Quotes only errors in a gateway's format, so that no text of another kind of server is shown. */
export function toFinding(error: GatewayError): Finding {
  const fix = FIXES[error.kind];
  return { ok: false, what: error.isFormless ? toOwnWords(error) : error.message, ...(fix !== undefined && { fix }) };
}

function toOwnWords({ message, quote }: GatewayError): string {
  return message.slice(0, message.length - quote.length);
}

function countModels(count: number): string {
  return count === 1 ? "one model" : `${count} models`;
}

const LIST_MS = 10_000;
/** Time between two checks while the gateway has a problem. */
const AGAIN_MS = 30_000;
/** A gateway without a model list responds with one of these statuses. */
const NO_LIST_STATUSES = new Set([400, 404, 405, 410, 501]);

/** The gateway's state in words that can be public, on a page or in a monitor. */
export type GatewayState = "ok" | "not known yet" | "unreachable" | "key refused" | "unknown model" | "not working";

export interface GatewayProblem {
  state: GatewayState;
  /** Describes the problem and how to fix it, for the operator. */
  sentence: string;
}

/** Checks with the model list and with answers whether the gateway works as configured. */
export interface GatewayHealth {
  /** Starts the checks in the background. Later calls have no effect. */
  begin(): void;
  state(): GatewayState;
  /** Reports that a model answered: the gateway works, even if its list lacks the model. */
  answered(model: string): void;
  close(): void;
}

export interface GatewayHealthOptions {
  list(signal: AbortSignal): Promise<string[]>;
  baseUrl: string;
  models: NamedModels;
  /** True for the second gateway, which Palaver uses while the first is down. */
  isSecond?: boolean;
  log: Logger;
  /** Called with each new problem, and with undefined once the problem is solved. */
  onChange(problem: GatewayProblem | undefined): void;
}

interface Trouble {
  state: GatewayState;
  finding: Finding;
  /** Replaces, in the log, a finding that quotes the gateway. The log shows the quote only at `debug`. */
  logged?: Finding;
  model?: string;
}

/** Requests the model list in the background until the gateway works. Logs each problem once, with its fix. */
export function watchGateway(options: GatewayHealthOptions): GatewayHealth {
  const { list, baseUrl, models, isSecond = false, log, onChange } = options;
  let troubles: readonly Trouble[] | undefined;
  let timer: NodeJS.Timeout | undefined;
  const closing = new AbortController();

  function say(finding: Finding): string {
    const { what, fix } = isSecond ? toSecond(finding) : finding;
    return fix === undefined ? what : `${what} ${fix}`;
  }

  function settle(found: readonly Trouble[]): void {
    const toSentence = ({ finding }: Trouble) => say(finding);
    const [before, now] = [troubles?.map(toSentence).join("\n"), found.map(toSentence).join("\n")];
    troubles = found;
    if (found.length === 0) clearTimeout(timer);
    if (before === now || (before === undefined && now === "")) return;
    for (const { finding, logged } of found) {
      log.warn(say(logged ?? finding));
      if (logged !== undefined) log.debug(say(finding));
    }
    if (now === "") log.info({ gateway: baseUrl }, "the gateway works again");
    const [first] = found;
    onChange(first && { state: first.state, sentence: found.map(toSentence).join(" ") });
  }

  async function look(): Promise<void> {
    try {
      const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(LIST_MS)]);
      settle(findUnlisted(models, await list(signal)));
    } catch (error) {
      if (closing.signal.aborted) return;
      settle(error instanceof GatewayError ? toTroubles(error) : [toSilence(baseUrl)]);
    }
    if (closing.signal.aborted || troubles?.length === 0) return;
    timer = setTimeout(() => void look(), AGAIN_MS).unref();
  }

  return {
    begin: () => void look(),
    state: () => (troubles === undefined ? "not known yet" : (troubles[0]?.state ?? "ok")),
    answered(model) {
      if (troubles === undefined || troubles.length === 0) return;
      settle(troubles.filter((trouble) => trouble.model !== undefined && trouble.model !== model));
    },
    close() {
      closing.abort();
      clearTimeout(timer);
    },
  };
}

/** An empty list proves nothing about the models. */
function findUnlisted(configured: NamedModels, listed: readonly string[]): Trouble[] {
  const missing = entriesOf(configured).filter(([, model]) => listed.length > 0 && !listed.includes(model));
  return missing.map(([variable, model]) => ({
    state: "unknown model",
    model,
    finding: checkListed(variable, model, listed),
    logged: {
      ok: false,
      what: describeUnlisted(variable, model),
      fix: "Set it to one of them: `npm run doctor` names them.",
    },
  }));
}

function toTroubles(error: GatewayError): Trouble[] {
  if (hasNoList(error)) return [];
  // Everyone can see this finding on the page, so it omits the gateway's own words.
  return [{ state: toState(error.kind), finding: { ...toFinding(error), what: toOwnWords(error) } }];
}

export function hasNoList({ kind, status }: GatewayError): boolean {
  return kind === "malformed" || (status !== undefined && NO_LIST_STATUSES.has(status));
}

function toState(kind: GatewayErrorKind): GatewayState {
  if (kind === "unreachable") return "unreachable";
  return kind === "unauthorized" ? "key refused" : "not working";
}

function toSilence(baseUrl: string): Trouble {
  const fix = "Check GATEWAY_BASE_URL, and that the gateway is running.";
  return { state: "unreachable", finding: { ok: false, what: `The gateway at ${baseUrl} does not answer.`, fix } };
}
