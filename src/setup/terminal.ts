import type { Readable, Writable } from "node:stream";
import {
  autocomplete,
  cancel,
  confirm,
  intro,
  isCancel,
  log,
  outro,
  password,
  type SpinnerResult,
  select,
  spinner,
  text,
} from "@clack/prompts";
import { formatFinding } from "../doctor/report.ts";
import type { Finding } from "../port/finding.ts";
import type { Setup, SetupField, SetupStep, SetupWay } from "../port/setup.ts";

export interface TerminalOptions {
  setup: Setup;
  input: Readable;
  output: Writable;
}

/** The person has left. */
class LeftError extends Error {
  override readonly name = "LeftError";
}

const SAVE = "save";

/** Leads a person through the steps at a terminal. Resolves to whether something was saved or shown to be saved. */
export async function runSetup({ setup, input, output }: TerminalOptions): Promise<boolean> {
  const talk: Talk = { setup, streams: { input, output }, values: {}, done: new Set() };
  try {
    intro("Set up Palaver", { output });
    for (let next = await chooseStep(talk); next !== SAVE; next = await chooseStep(talk)) await walk(next, talk);
    return await save(talk);
  } catch (error) {
    if (!(error instanceof LeftError)) throw error;
    cancel("Nothing was saved.", { output });
    return false;
  }
}

interface Talk {
  setup: Setup;
  streams: Pick<TerminalOptions, "input" | "output">;
  values: Record<string, string>;
  done: Set<string>;
}

async function ask<T>(prompt: Promise<T>): Promise<Exclude<T, symbol>> {
  const answer = await prompt;
  if (isCancel(answer)) throw new LeftError();
  return answer as Exclude<T, symbol>;
}

async function chooseStep({ setup, streams, values, done }: Talk): Promise<string> {
  const steps = setup.steps(values).map(({ id, title }) => ({
    value: id,
    label: title,
    ...(done.has(id) && { hint: "works" }),
  }));
  const options = [...steps, { value: SAVE, label: "Save, and end" }];
  const behind = options.slice(options.findIndex(({ value }) => value === [...done].at(-1)) + 1);
  const initialValue = behind.find(({ value }) => !done.has(value))?.value ?? SAVE;
  return ask(select({ message: "What is next?", options, initialValue, showInstructions: false, ...streams }));
}

async function walk(stepId: string, talk: Talk): Promise<void> {
  const { setup, values, streams, done } = talk;
  const { output } = streams;
  const find = () => setup.steps(values).find(({ id }) => id === stepId);
  const step = find();
  if (step === undefined) return;
  log.info(step.summary, { output });
  const wayId = await askForWay(step, talk);
  const fields = step.ways.find(({ id }) => id === wayId)?.fields ?? [];
  // Forgets the fields of the ways that were not chosen.
  for (const { name } of step.ways.flatMap((way) => way.fields)) {
    if (!fields.some((field) => field.name === name)) delete values[name];
  }
  for (const field of fields.filter(({ isFirst }) => isFirst)) await askForField(field, [], talk);
  showTasks(find()?.ways.find(({ id }) => id === wayId)?.tasks ?? [], output);
  let models: readonly string[] | undefined;
  for (const field of fields.filter(({ isFirst }) => !isFirst)) {
    if (field.kind === "model") models ??= await listModels(step.name, talk);
    const before = values[field.name];
    await askForField(field, models ?? [], talk);
    if (values[field.name] === before) continue;
    for (const { name, sentTo } of fields) if (sentTo === field.name) delete values[name];
  }
  const busy = begin("Trying it…", output);
  const findings = await setup.check(stepId, values, new AbortController().signal);
  const isWell = findings.every(({ ok }) => ok);
  busy.stop(isWell ? "It works." : "Something is missing.");
  show(output, step.name, findings);
  if (isWell) done.add(stepId);
  else if (await ask(confirm({ message: "Try it again?", ...streams }))) await walk(stepId, talk);
}

async function askForWay({ title, ways }: SetupStep, { streams }: Talk): Promise<string> {
  const [only] = ways;
  if (ways.length === 1 && only !== undefined) return only.id;
  const options = ways.map(({ id, label }) => ({ value: id, label }));
  return ask(select({ message: title, options, showInstructions: false, ...streams }));
}

async function askForField(field: SetupField, models: readonly string[], { streams, values }: Talk): Promise<void> {
  const { name, label, hint, kind, isOptional = false, value = "" } = field;
  const message = `${label}${isOptional ? " (optional)" : ""}. ${hint}`;
  const initialValue = values[name] ?? value;
  const validate = (given: string | undefined) => (isOptional || given?.trim() ? undefined : "This is needed.");
  if (kind === "model" && models.length > 0) {
    const options = models.map((model) => ({ value: model, label: model }));
    const all = isOptional ? [{ value: "", label: "none" }, ...options] : options;
    values[name] = await ask(autocomplete({ message, options: all, maxItems: 10, ...streams }));
  } else if (kind === "secret" && initialValue === "") {
    values[name] = await ask(password({ message, validate, ...streams }));
  } else {
    values[name] = await ask(text({ message, initialValue, validate, ...streams }));
  }
}

function showTasks(tasks: SetupWay["tasks"], output: Writable): void {
  for (const [index, { text: words, link }] of tasks.entries()) {
    log.step(`${index + 1}. ${words}`, { output });
    // On a line of its own, so that nothing breaks it.
    if (link !== undefined) output.write(`${link.label}: ${link.url}\n`);
  }
}

async function listModels(title: string, { setup, values, streams }: Talk): Promise<readonly string[]> {
  const busy = begin("Asking for the models…", streams.output);
  const { models, findings } = await setup.listModels(values, new AbortController().signal);
  busy.stop(models.length > 0 ? `The gateway lists ${models.length} models.` : "The gateway lists no models.");
  show(streams.output, title, findings);
  return models;
}

function begin(words: string, output: Writable): SpinnerResult {
  const busy = spinner({ output, indicator: "timer" });
  busy.start(words);
  return busy;
}

/** Prints findings as the doctor does, each on one line, so that no link is broken. */
function show(output: Writable, title: string, findings: readonly Finding[]): void {
  // Findings of the setup hold no secret.
  const options = { redact: (words: string) => words, hasColor: hasColors(output) };
  for (const finding of findings) output.write(`${formatFinding(title, finding, options)}\n`);
}

function hasColors(output: Writable): boolean {
  return "isTTY" in output && output.isTTY === true;
}

async function save({ setup, values, streams }: Talk): Promise<boolean> {
  const { output } = streams;
  const { text: lines, problems } = setup.toEnvFile(values);
  show(output, "Configuration", problems.map(toWrong));
  if (lines === "") return false;
  const target = setup.target();
  const options = [
    ...(target === undefined || problems.length > 0 ? [] : [{ value: "write", label: `Write them to ${target}` }]),
    { value: "show", label: "Show the lines, secrets included" },
  ];
  const message = "These values make a file .env. Its other lines stay as they are, and only your user can read it.";
  if ((await ask(select({ message, options, showInstructions: false, ...streams }))) === "show") {
    output.write(`\n${lines}\n`);
    outro("Save these lines as .env in the folder from which you start Palaver, readable for you alone.", { output });
    return true;
  }
  const failures = setup.save(values);
  show(output, "Configuration", failures.map(toWrong));
  outro(failures.length === 0 ? "Written. Begin with: npm start" : "Nothing was written.", { output });
  return failures.length === 0;
}

function toWrong(what: string): Finding {
  return { ok: false, what };
}
