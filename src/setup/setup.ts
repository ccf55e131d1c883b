import { join } from "node:path";
import { parseEnv } from "node:util";
import { runWithin } from "../concurrency/deadlines.ts";
import { type Config, ConfigError, readConfig } from "../config/config.ts";
import { secretsOf } from "../config/summary.ts";
import { checkGateway, listModels } from "../doctor/gateway.ts";
import { createRedactor } from "../log/redact.ts";
import { describeError } from "../port/errors.ts";
import type { Finding } from "../port/finding.ts";
import type { EnvFile, Setup, SetupField, SetupStep, SetupValues } from "../port/setup.ts";
import { canWriteEnvFile, mergeEnv, readEnvFile, writeEnvFile } from "./env-file.ts";
import { GATEWAY_STEP } from "./gateway.ts";
import { PLATFORM_SETUPS } from "./platforms.ts";

/** Longest that one step is tried. */
const CHECK_MS = 60_000;
const GATEWAY_GIVEN = [
  "GATEWAY_HEADERS",
  "GATEWAY_IMAGE_KEY_HEADER",
  "GATEWAY_EXTRA_BODY",
  "GATEWAY_EXTRA_BODY_FILE",
  "IMAGE_API",
];
const ADDRESS = "GATEWAY_BASE_URL";
/** Secrets that are sent to the gateway's address, and must not be sent to another one. */
const GATEWAY_SECRETS = ["GATEWAY_API_KEY", "GATEWAY_HEADERS"];
/** Variables that no step has, and that the last one offers. */
const BESIDES = ["LOCAL_CHAT"];
const DEFAULT_BOT_NAME = "Palaver";

export interface SetupOptions {
  /** The environment of the process, including what it read from the file. */
  env: Readonly<Record<string, string | undefined>>;
  /** The working folder, from whose `.env` the next start takes its variables. */
  folder: string;
}

type Environment = SetupOptions["env"];

export function createSetup({ env, folder }: SetupOptions): Setup {
  const path = join(folder, ".env");
  const loaded = readLoaded(path);
  /** Set elsewhere than in the file. */
  const outer = Object.fromEntries(Object.entries(env).filter(([name, value]) => value !== loaded[name]));
  const stepsFor = (values: SetupValues) => toSteps(env, values);
  const givenOf = (values: SetupValues) => readGiven(values, stepsFor(values));

  /** Values of one step and what it needs of the environment, so that nothing else is in their way. */
  function isolate(stepId: string, given: readonly string[], values: SetupValues): Environment {
    const steps = stepsFor(values).filter(({ id }) => id === stepId);
    const common = given.map((name) => [name, env[name]] as const);
    return { ...Object.fromEntries(common), ...readGiven(values, steps) };
  }

  /** Extra parts of requests to the gateway in use are not sent to another address. */
  const isolateGateway = (values: SetupValues) =>
    isolate(GATEWAY_STEP.id, env[ADDRESS]?.trim() && isOtherAddress(env, givenOf(values)) ? [] : GATEWAY_GIVEN, values);

  /** The variables that the next start would read. */
  const readNext = (): Environment => ({ ...parseEnv(readEnvFile(path)), ...outer });

  function plan(values: SetupValues): EnvFile {
    const given = givenOf(values);
    if (Object.keys(given).length === 0) return { text: "", problems: ["Nothing is filled in yet."] };
    try {
      const text = mergeEnv(readEnvFile(path), given);
      const hidden = Object.entries(given).filter(([name, value]) => (outer[name] ?? value) !== value);
      const overruled = hidden.map(([name]) => `${name} is set in the environment, which counts more than ${path}.`);
      const mispaired = findMispaired(readNext(), given);
      return { text, problems: [...overruled, ...mispaired, ...findProblems({ ...parseEnv(text), ...outer })] };
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
      if (stepId === GATEWAY_STEP.id) {
        const run = ({ gateway }: Config, bounded: AbortSignal) => checkGateway(gateway, { mayChat: true }, bounded);
        return examine(isolateGateway(values), run, signal);
      }
      const platform = PLATFORM_SETUPS.find(({ id }) => id === stepId);
      if (platform === undefined) return [{ ok: false, what: "There is no such step." }];
      return examine(isolate(stepId, platform.given, values), platform.check, signal);
    },
    async listModels(values, signal) {
      let models: readonly string[] = [];
      // The list is what the model is chosen from, so any name stands for it.
      const variables = { CHAT_MODEL: "any", ...isolateGateway(values) };
      const run = async ({ gateway }: Config, bounded: AbortSignal): Promise<Finding[]> => {
        const listed = await listModels(gateway, bounded);
        models = listed.models;
        return listed.findings;
      };
      const findings = await examine(variables, run, signal);
      return { models, findings };
    },
    target: () => (canWriteEnvFile(path) ? path : undefined),
    toEnvFile(values) {
      const { problems } = plan(values);
      try {
        return { text: mergeEnv("", givenOf(values)), problems };
      } catch {
        // The problems already name values that no file can hold.
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

function toSteps(env: Environment, values: SetupValues): SetupStep[] {
  const how = {
    botName: env["BOT_NAME"]?.trim() || DEFAULT_BOT_NAME,
    publicUrl: values["PUBLIC_URL"]?.trim() || env["PUBLIC_URL"]?.trim() || undefined,
  };
  return [...PLATFORM_SETUPS.map(({ toStep }) => toStep(how)), GATEWAY_STEP];
}

/** The values that belong to some step, without the empty ones. */
function readGiven(values: SetupValues, steps: readonly SetupStep[]): Record<string, string> {
  const names = new Set([...BESIDES, ...fieldsOf(steps).map(({ name }) => name)]);
  const entries = Object.entries(values).map(([name, value]) => [name, value.trim()] as const);
  return Object.fromEntries(entries.filter(([name, value]) => names.has(name) && value !== ""));
}

function fieldsOf(steps: readonly SetupStep[]): SetupField[] {
  return steps.flatMap(({ ways }) => ways.flatMap(({ fields }) => fields));
}

/** Nothing is connected without a secret. Other values, such as PUBLIC_URL, can be there before. */
function secretNames(steps: readonly SetupStep[]): string[] {
  return fieldsOf(steps).flatMap(({ name, kind }) => (kind === "secret" ? [name] : []));
}

function isOtherAddress(current: Environment, { [ADDRESS]: given }: SetupValues): boolean {
  return given !== undefined && given !== current[ADDRESS]?.trim();
}

/** Finds secrets of the gateway in use that another address would receive. */
function findMispaired(next: Environment, given: SetupValues): string[] {
  const kept = isOtherAddress(next, given) ? GATEWAY_SECRETS : [];
  return kept
    .filter((name) => next[name]?.trim() && given[name] === undefined)
    .map((name) => `${name} belongs to the address in use: give a new one together with a new ${ADDRESS}.`);
}

async function examine(
  variables: Environment,
  run: (config: Config, signal: AbortSignal) => Promise<Finding[]>,
  signal: AbortSignal,
): Promise<Finding[]> {
  try {
    const config = readConfig(variables);
    const { text } = createRedactor(secretsOf(config));
    const findings = await runWithin(CHECK_MS, (bounded) => run(config, bounded), signal);
    return findings.map(({ ok, what, fix }) => ({
      ok,
      what: text(what),
      ...(fix !== undefined && { fix: text(fix) }),
    }));
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ConfigError) return error.problems.map((what) => ({ ok: false, what }));
    return [{ ok: false, what: `This could not be tried to its end: ${describeError(error)}` }];
  }
}

/** Says why the service would not start with these variables. */
function findProblems(variables: Environment): readonly string[] {
  try {
    readConfig(variables);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

/** The variables that the process read from the file when it started. */
function readLoaded(path: string): Environment {
  try {
    return parseEnv(readEnvFile(path));
  } catch {
    return {};
  }
}
