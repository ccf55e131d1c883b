import { join } from "node:path";
import { parseEnv } from "node:util";
import { runWithin } from "../concurrency/deadlines.ts";
import { type Config, ConfigError, readConfig } from "../config/config.ts";
import { secretsOf, tokenForms } from "../config/summary.ts";
import { checkGateway, listModels } from "../doctor/gateway.ts";
import { checkPlatform } from "../doctor/platforms.ts";
import { createRedactor } from "../log/redact.ts";
import { describeError } from "../port/errors.ts";
import type { Finding } from "../port/finding.ts";
import type { AdapterModule } from "../port/module.ts";
import type { EnvFile, Setup, SetupField, SetupStep, SetupValues } from "../port/setup.ts";
import { canWriteEnvFile, mergeEnv, readEnvFile, writeEnvFile } from "./env-file.ts";
import { GATEWAY_STEP } from "./gateway.ts";

const CHECK_MS = 60_000;
const GATEWAY_GIVEN = [
  "GATEWAY_HEADERS",
  "GATEWAY_IMAGE_KEY_HEADER",
  "GATEWAY_EXTRA_BODY",
  "GATEWAY_EXTRA_BODY_FILE",
  "IMAGE_API",
];
const ADDRESS = "GATEWAY_BASE_URL";
/** The gateway's list of models depends on fields of these kinds. */
const LISTING: readonly SetupField["kind"][] = ["address", "secret"];
/** Secrets that Palaver must send only to the gateway's current address. */
const GATEWAY_SECRETS = ["GATEWAY_API_KEY", "GATEWAY_HEADERS"];
/** Variables that belong to no step. The last step offers them. */
const BESIDES = ["LOCAL_CHAT"];
const DEFAULT_BOT_NAME = "Palaver";

export interface SetupOptions {
  /** The process's environment, including variables from the file. */
  env: Readonly<Record<string, string | undefined>>;
  /** The folder with the `.env` that the next start reads. */
  folder: string;
  modules: readonly AdapterModule[];
}

type Environment = SetupOptions["env"];

export function createSetup({ env, folder, modules }: SetupOptions): Setup {
  const path = join(folder, ".env");
  const loaded = readLoaded(path);
  /** Variables whose values do not come from the file. */
  const outer = Object.fromEntries(Object.entries(env).filter(([name, value]) => value !== loaded[name]));
  const stepsFor = (values: SetupValues) => toSteps(env, values, modules);
  const givenOf = (values: SetupValues) => readGiven(values, stepsFor(values));

  /**
   * Returns the values of one step and the variables that this step needs. All other variables are left out, so that
   * they cannot interfere.
   */
  function isolate(stepId: string, given: readonly string[], values: SetupValues): Environment {
    const steps = stepsFor(values).filter(({ id }) => id === stepId);
    const common = given.map((name) => [name, env[name]] as const);
    return { ...Object.fromEntries(common), ...readGiven(values, steps) };
  }

  /** A request to another address must not contain the extra fields for the current gateway. */
  const isolateGateway = (values: SetupValues) =>
    isolate(GATEWAY_STEP.id, env[ADDRESS]?.trim() && isOtherAddress(env, givenOf(values)) ? [] : GATEWAY_GIVEN, values);

  /** Returns the variables that the next start will read. */
  const readNext = (): Environment => ({ ...parseEnv(readEnvFile(path)), ...outer });

  function plan(values: SetupValues): EnvFile {
    const given = givenOf(values);
    if (Object.keys(given).length === 0) return { text: "", problems: ["No field is filled in yet."] };
    const toWords = createWording(stepsFor(values));
    try {
      const text = mergeEnv(readEnvFile(path), given);
      const hidden = Object.keys(given).filter((name) => (outer[name] ?? given[name]) !== given[name]);
      const overruled = hidden.map(
        (name) => `${toWords(name)} is set in the environment (${name}), which overrides ${path}.`,
      );
      const others = [...findMispaired(readNext(), given), ...findProblems({ ...parseEnv(text), ...outer }, modules)];
      return { text, problems: [...overruled, ...others.map(toWords)] };
    } catch (error) {
      return { text: "", problems: [`${path}: ${describeError(error)}`] };
    }
  }

  return {
    isConfigured() {
      try {
        const next = readNext();
        return secretNames(stepsFor({})).some((name) => next[name]?.trim());
      } catch {
        return true;
      }
    },
    steps: stepsFor,
    async check(stepId, values, signal) {
      const step = stepsFor(values).find(({ id }) => id === stepId);
      if (step === undefined) return [{ ok: false, what: "This step does not exist." }];
      const module = modules.find(({ platform }) => platform === stepId);
      const variables = module ? isolate(stepId, module.setup?.given ?? [], values) : isolateGateway(values);
      const empty = findEmpty(step, variables);
      if (empty !== undefined) return [empty];
      const run = (config: Config, bounded: AbortSignal) =>
        module ? checkPlatform(module, config, bounded) : checkGatewayOf(config, bounded);
      return examine({ variables, modules, run, toWords: createWording([step]) }, signal);
    },
    async listModels(values, signal) {
      const empty = findEmpty(GATEWAY_STEP, isolateGateway(values), LISTING);
      if (empty !== undefined) return { models: [], findings: [empty] };
      let models: readonly string[] = [];
      // Any name will do, because the person has not chosen a model yet.
      const variables = { CHAT_MODEL: "any", ...isolateGateway(values) };
      const run = async ({ gateway }: Config, bounded: AbortSignal): Promise<Finding[]> => {
        const listed = await listModels(gateway, bounded);
        models = listed.models;
        return listed.findings;
      };
      const findings = await examine({ variables, modules, run, toWords: createWording([GATEWAY_STEP]) }, signal);
      return { models, findings };
    },
    target: () => (canWriteEnvFile(path) ? path : undefined),
    toEnvFile(values) {
      const { problems } = plan(values);
      try {
        return { text: mergeEnv("", givenOf(values)), problems };
      } catch {
        // The values cannot be written into the file. The problems name them.
        return { text: "", problems };
      }
    },
    save(values) {
      const { text, problems } = plan(values);
      if (problems.length > 0) return problems;
      try {
        writeEnvFile(path, text);
        return [];
      } catch (error) {
        return [`${path} could not be written: ${describeError(error)}`];
      }
    },
  };
}

function checkGatewayOf({ gateway, limits: { historyMaxTokens } }: Config, signal: AbortSignal): Promise<Finding[]> {
  return checkGateway(gateway, { mayChat: true, historyMaxTokens }, signal);
}

function toSteps(env: Environment, values: SetupValues, modules: readonly AdapterModule[]): SetupStep[] {
  const how = {
    botName: env["BOT_NAME"]?.trim() || DEFAULT_BOT_NAME,
    publicUrl: values["PUBLIC_URL"]?.trim() || env["PUBLIC_URL"]?.trim() || undefined,
  };
  return [...modules.flatMap(({ setup }) => setup?.toStep(how) ?? []), GATEWAY_STEP];
}

/** Returns the non-empty values that belong to these steps. */
function readGiven(values: SetupValues, steps: readonly SetupStep[]): Record<string, string> {
  const names = new Set([...BESIDES, ...fieldsOf(steps).map(({ name }) => name)]);
  const entries = Object.entries(values).map(([name, value]) => [name, value.trim()] as const);
  return Object.fromEntries(entries.filter(([name, value]) => names.has(name) && value !== ""));
}

function fieldsOf(steps: readonly SetupStep[]): SetupField[] {
  return steps.flatMap(({ ways }) => ways.flatMap(({ fields }) => fields));
}

/**
 * Returns the variables of these steps that are secrets. Only a secret shows that a platform or gateway is set up;
 * other values, such as PUBLIC_URL, prove nothing.
 */
function secretNames(steps: readonly SetupStep[]): string[] {
  return fieldsOf(steps).flatMap(({ name, kind }) => (kind === "secret" ? [name] : []));
}

function isOtherAddress(current: Environment, { [ADDRESS]: given }: SetupValues): boolean {
  return given !== undefined && given !== current[ADDRESS]?.trim();
}

/** Finds secrets of the current gateway that would go to another address. */
function findMispaired(next: Environment, given: SetupValues): string[] {
  const kept = isOtherAddress(next, given) ? GATEWAY_SECRETS : [];
  return kept
    .filter((name) => next[name]?.trim() && given[name] === undefined)
    .map((name) => `${name} belongs to the current address: when you change ${ADDRESS}, enter a new one too.`);
}

/**
 * Returns a function that replaces variable names with the form's labels. If there are several steps, it adds the
 * step's name.
 */
function createWording(steps: readonly SetupStep[]): (text: string) => string {
  const labels = new Map<string, string>();
  for (const step of steps) {
    const of = steps.length === 1 ? "" : ` (${step.name})`;
    for (const { name, label } of fieldsOf([step])) labels.set(name, `"${label}"${of}`);
  }
  return (text) => text.replaceAll(/[A-Z]+(?:_[A-Z]+)+/g, (name) => labels.get(name) ?? name);
}

/** Finds the way with the most values and lists its empty fields; undefined if none is empty. */
function findEmpty(
  { ways }: SetupStep,
  variables: Environment,
  kinds?: readonly SetupField["kind"][],
): Finding | undefined {
  const needed = ways.map(({ fields }) =>
    fields.filter(({ kind, isOptional }) => isOptional !== true && (kinds?.includes(kind) ?? true)),
  );
  const empty = needed.map((fields) => fields.filter(({ name }) => !variables[name]?.trim()));
  const filledCount = (index: number) => (needed[index]?.length ?? 0) - (empty[index]?.length ?? 0);
  const best = empty.reduce((most, _, index) => (filledCount(index) > filledCount(most) ? index : most), 0);
  const labels = (empty[best] ?? []).map(({ label }) => `"${label}"`);
  if (labels.length === 0) return undefined;
  return { ok: false, what: `Off until you fill in ${labels.join(" and ")}.` };
}

interface Examination {
  variables: Environment;
  modules: readonly AdapterModule[];
  run(config: Config, signal: AbortSignal): Promise<Finding[]>;
  toWords(text: string): string;
}

/** Resolves to the findings of `run`, or to the problems of the variables, in the form's words. */
async function examine({ variables, modules, run, toWords }: Examination, signal: AbortSignal): Promise<Finding[]> {
  try {
    const config = readConfig(variables, modules);
    const { text: redact } = createRedactor(secretsOf(config), tokenForms(modules));
    const say = (text: string) => toWords(redact(text));
    const findings = await runWithin(CHECK_MS, (bounded) => run(config, bounded), signal);
    return findings.map(({ what, fix, ...rest }) => ({
      ...rest,
      what: say(what),
      ...(fix !== undefined && { fix: say(fix) }),
    }));
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ConfigError) return error.problems.map((what) => ({ ok: false, what: toWords(what) }));
    return [{ ok: false, what: `This check failed: ${describeError(error)}` }];
  }
}

/** Returns the reasons why the service would not start with these variables. */
function findProblems(variables: Environment, modules: readonly AdapterModule[]): readonly string[] {
  try {
    readConfig(variables, modules);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

/** Returns the variables that this process read from the file when it started. */
function readLoaded(path: string): Environment {
  try {
    return parseEnv(readEnvFile(path));
  } catch {
    return {};
  }
}
