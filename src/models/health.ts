import type { Logger } from "pino";
import type { Gateway } from "../gateway/client.ts";
import { GatewayError, type GatewayErrorKind } from "../gateway/errors.ts";
import type { Finding } from "../port/finding.ts";
import { nearModels } from "./model-list.ts";

const FIXES: Partial<Record<GatewayErrorKind, string>> = {
  unreachable: "Check GATEWAY_BASE_URL, and that the gateway runs.",
  unauthorized: "Check GATEWAY_API_KEY, and which models it may use.",
  rejected: "Check that GATEWAY_BASE_URL is the gateway's address up to but not including /v1.",
  malformed: "Check that GATEWAY_BASE_URL is the gateway's address up to but not including /v1.",
  "rate-limited": "Try again later.",
  overloaded: "Try again later.",
};

interface ListFindings {
  /** The gateway's finding first, then one for each configured model; the gateway's alone where there is an error. */
  findings: Finding[];
  error?: GatewayError;
}

/** Models by the variables that name them; an undefined one is not configured. */
export type NamedModels = Partial<Record<"CHAT_MODEL" | "CHAT_FALLBACK_MODEL" | "IMAGE_MODEL", string | undefined>>;

interface ConfiguredModels {
  chatModel: string;
  /** Undefined: nothing is drawn. */
  imageModel: string | undefined;
  fallback: { model: string | undefined };
}

/** The models that each gateway is configured to give. */
export function namedModels({ chatModel, imageModel, fallback: { model } }: ConfiguredModels) {
  const first: NamedModels = { CHAT_MODEL: chatModel, CHAT_FALLBACK_MODEL: model, IMAGE_MODEL: imageModel };
  const second: NamedModels = model === undefined ? { CHAT_MODEL: chatModel } : { CHAT_FALLBACK_MODEL: model };
  return { first, second };
}

/** The second gateway has variables of its own. */
export function toSecond({ ok, what, fix }: Finding): Finding {
  const own = fix?.replaceAll(/GATEWAY_(?=BASE_URL|API_KEY)/g, "GATEWAY_FALLBACK_");
  return { ok, what: `Second gateway: ${what}`, ...(own !== undefined && { fix: own }) };
}

/** Asks for the list of models: whether the gateway answers, takes the key, and offers what is configured. */
export async function checkModels(
  gateway: Pick<Gateway, "listModels">,
  baseUrl: string,
  configured: NamedModels,
  signal: AbortSignal,
): Promise<ListFindings> {
  try {
    const models = await gateway.listModels(signal);
    const findings = [
      { ok: true, what: `${baseUrl} answers and takes the key, which may use ${countModels(models.length)}.` },
      ...entriesOf(configured).map(([variable, model]) => checkListed(variable, model, models)),
    ];
    return { findings };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return { findings: [toFinding(error)], error };
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
        ? "It lists none at all: ask whoever gave you the key which models it is for."
        : `Set it to one of them: ${some}${models.length > 10 ? ", …" : ""}.`,
  };
}

function describeUnlisted(variable: string, model: string): string {
  return `${variable} ${model} is not one of the models that the key may use.`;
}

/** Quotes what is said as a gateway says it, and nothing of another page that stands at the address. */
export function toFinding(error: GatewayError): Finding {
  const fix = FIXES[error.kind];
  return { ok: false, what: error.isFormless ? toOwnWords(error) : error.message, ...(fix !== undefined && { fix }) };
}

/** The message without the words of the gateway at its end. */
function toOwnWords({ message, quote }: GatewayError): string {
  return message.slice(0, message.length - quote.length);
}

function countModels(count: number): string {
  return count === 1 ? "one model" : `${count} models`;
}

const LIST_MS = 10_000;
/** Until it is asked again, while it is not well. */
const AGAIN_MS = 30_000;
/** Answers to the question for the models of gateways that have no such list. */
const NO_LIST_STATUSES = new Set([400, 404, 405, 410, 501]);

/** The state of the gateway in words that a page and a monitor can show to anybody. */
export type GatewayState = "ok" | "not known yet" | "unreachable" | "key refused" | "unknown model" | "not working";

export interface GatewayProblem {
  state: GatewayState;
  /** Tells the operator the problem and its cure. */
  sentence: string;
}

/** Tells, by its list of models and its answers, if the gateway does what it is configured for. */
export interface GatewayHealth {
  /** Begins to ask; at most once. Waits for nothing. */
  begin(): void;
  state(): GatewayState;
  /** Notes that a model answers: it is well, whatever the list says. */
  answered(model: string): void;
  close(): void;
}

export interface GatewayHealthOptions {
  /** Lists the models that the key may use. */
  list(signal: AbortSignal): Promise<string[]>;
  baseUrl: string;
  models: NamedModels;
  /** This is the second gateway, asked while the first is down. */
  isSecond?: boolean;
  log: Logger;
  /** Told when something else is wrong than before, or nothing any more. */
  onChange(problem: GatewayProblem | undefined): void;
}

/** A problem of one model, or of the gateway as a whole. */
interface Trouble {
  state: GatewayState;
  finding: Finding;
  /** Logged in place of a finding that quotes the gateway; the quotation stands in the log at `debug` only. */
  logged?: Finding;
  model?: string;
}

/** Asks for the models, in the background, until the gateway is well. Logs each problem once, with the cure. */
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
    if (now === "") log.info({ gateway: baseUrl }, "the gateway is well again");
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

/** A list of nothing says nothing. */
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
  // Everybody at the page reads this: not the gateway's own words.
  return [{ state: toState(error.kind), finding: { ...toFinding(error), what: toOwnWords(error) } }];
}

/** The gateway answers, and has no list of models. */
export function hasNoList({ kind, status }: GatewayError): boolean {
  return kind === "malformed" || (status !== undefined && NO_LIST_STATUSES.has(status));
}

function toState(kind: GatewayErrorKind): GatewayState {
  if (kind === "unreachable") return "unreachable";
  return kind === "unauthorized" ? "key refused" : "not working";
}

function toSilence(baseUrl: string): Trouble {
  const fix = "Check GATEWAY_BASE_URL, and that the gateway runs.";
  return { state: "unreachable", finding: { ok: false, what: `The gateway at ${baseUrl} does not answer.`, fix } };
}
