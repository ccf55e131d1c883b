import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { Readable, Writable } from "node:stream";
import {
  autocomplete,
  cancel,
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
import type { PasteFile, Setup, SetupField, SetupStep, SetupWay } from "../port/setup.ts";

export interface TerminalOptions {
  setup: Setup;
  input: Readable;
  output: Writable;
}

class LeftError extends Error {
  override readonly name = "LeftError";
}

const SAVE = "save";

/** Guides a person through the setup in a terminal. Resolves to true if values were saved or shown. */
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
  const options = [...steps, { value: SAVE, label: "Save and exit" }];
  const behind = options.slice(options.findIndex(({ value }) => value === [...done].at(-1)) + 1);
  const initialValue = behind.find(({ value }) => !done.has(value))?.value ?? SAVE;
  return ask(select({ message: "What next?", options, initialValue, showInstructions: false, ...streams }));
}

async function walk(stepId: string, talk: Talk): Promise<void> {
  const { setup, values, streams, done } = talk;
  const step = setup.steps(values).find(({ id }) => id === stepId);
  if (step === undefined) return;
  log.info(step.summary, streams);
  let wayId = await askForWay(step, talk);
  let isFirst = true;
  for (;;) {
    if (await attempt(step, wayId, isFirst, talk)) {
      done.add(stepId);
      return;
    }
    done.delete(stepId);
    const options = [
      { value: "again", label: "Yes" },
      ...(step.ways.length > 1 ? [{ value: "way", label: "Yes, another way" }] : []),
      { value: "leave", label: "No" },
    ];
    const next = await ask(select({ message: "Try again?", options, showInstructions: false, ...streams }));
    if (next === "leave") return;
    isFirst = next === "way";
    if (isFirst) wayId = await askForWay(step, talk, wayId);
  }
}

/** Asks for the values of one way to connect, and checks these values. Resolves to true if they work. */
async function attempt(step: SetupStep, wayId: string, showsTasks: boolean, talk: Talk): Promise<boolean> {
  const { setup, values, streams } = talk;
  const { output } = streams;
  const fields = step.ways.find(({ id }) => id === wayId)?.fields ?? [];
  // Removes the values that belong to options the person did not choose.
  for (const { name } of step.ways.flatMap((way) => way.fields)) {
    if (!fields.some((field) => field.name === name)) delete values[name];
  }
  for (const field of fields.filter(({ isFirst }) => isFirst)) await askForField(field, [], talk);
  const current = setup.steps(values).find(({ id }) => id === step.id);
  if (showsTasks) showTasks(current?.ways.find(({ id }) => id === wayId)?.tasks ?? [], output);
  let models: readonly string[] | undefined;
  for (const field of fields.filter(({ isFirst }) => !isFirst)) {
    if (field.kind === "model") models ??= await listModels(step.name, talk);
    // Without a list of models, the address or the key is wrong, so no model would answer.
    if (field.kind === "model" && models === undefined) return false;
    const before = values[field.name];
    await askForField(field, models ?? [], talk);
    if (values[field.name] === before) continue;
    for (const { name, sentTo } of fields) if (sentTo === field.name) delete values[name];
  }
  const busy = begin("Checking…", output);
  const findings = await setup.check(step.id, values, new AbortController().signal);
  const isWell = findings.every(({ ok }) => ok);
  busy.stop(isWell ? "It works." : "Something is wrong.");
  show(output, step.name, findings);
  return isWell;
}

async function askForWay({ title, ways }: SetupStep, { streams }: Talk, initialValue?: string): Promise<string> {
  const [only] = ways;
  if (ways.length === 1 && only !== undefined) return only.id;
  const options = ways.map(({ id, label }) => ({ value: id, label }));
  const before = initialValue !== undefined && { initialValue };
  return ask(select({ message: title, options, ...before, showInstructions: false, ...streams }));
}

async function askForField(field: SetupField, models: readonly string[], { streams, values }: Talk): Promise<void> {
  const { name, label, hint, kind, isOptional = false, value = "" } = field;
  const message = `${label}${isOptional ? " (optional)" : ""}. ${hint}`;
  const before = values[name] ?? value;
  const validate = (given: string | undefined) => (isOptional || given?.trim() ? undefined : "This field is required.");
  const [only] = models;
  if (kind === "secret") {
    const keeps = before === "" ? "" : ` Enter keeps ${before === value ? `"${value}"` : "the previous one"}.`;
    const check = (given: string | undefined) => (before === "" ? validate(given) : undefined);
    const given = await ask(password({ message: message + keeps, validate: check, ...streams }));
    values[name] = given || before;
  } else if (kind === "model" && only !== undefined && models.length === 1 && !isOptional) {
    values[name] = only;
    log.info(`${label}: ${only}. It's the only model the gateway lists.`, streams);
  } else if (kind === "model" && models.length > 0) {
    const options = models.map((model) => ({ value: model, label: model }));
    const all = isOptional ? [{ value: "", label: "none" }, ...options] : options;
    const initialValue = models.includes(before) && { initialValue: before };
    values[name] = await ask(autocomplete({ message, options: all, ...initialValue, maxItems: 10, ...streams }));
  } else {
    values[name] = await ask(text({ message, initialValue: before, validate, ...streams }));
  }
}

function showTasks(tasks: SetupWay["tasks"], output: Writable): void {
  for (const [index, { text: words, link, byHand }] of tasks.entries()) {
    log.step(`${index + 1}. ${byHand?.text ?? words}`, { output });
    // On separate lines, so that the prompt's layout does not break the paths.
    if (byHand !== undefined) output.write(`The file: ${toPath(byHand.file)}\n`);
    if (link !== undefined) output.write(`${link.label}: ${byHand?.url ?? link.url}\n`);
  }
}

/**
 * Returns the path of a file. Writes changed text to a new file outside the project first, so that the person can copy
 * it.
 */
function toPath({ path, text: changed }: PasteFile): string {
  if (changed === undefined) return path;
  const draft = join(mkdtempSync(join(tmpdir(), "palaver-")), basename(path));
  writeFileSync(draft, changed);
  return draft;
}

/** Resolves to the gateway's models; undefined if the gateway is unreachable or refuses the key. */
async function listModels(title: string, { setup, values, streams }: Talk): Promise<readonly string[] | undefined> {
  const busy = begin("Listing the models…", streams.output);
  const { models, findings } = await setup.listModels(values, new AbortController().signal);
  const isThere = findings.every(({ ok }) => ok);
  busy.stop(isThere ? `The gateway lists ${countModels(models.length)}.` : "Something is wrong.");
  show(streams.output, title, findings);
  return isThere ? models : undefined;
}

function countModels(count: number): string {
  if (count === 0) return "no models";
  return count === 1 ? "one model" : `${count} models`;
}

function begin(words: string, output: Writable): SpinnerResult {
  const busy = spinner({ output, indicator: "timer" });
  busy.start(words);
  return busy;
}

/** Prints findings one per line, like the doctor, so that links stay intact. */
function show(output: Writable, title: string, findings: readonly Finding[]): void {
  // The setup's findings contain no secrets.
  const options = { redact: (words: string) => words, hasColor: hasColors(output) };
  for (const finding of findings) output.write(`${formatFinding(title, finding, options)}\n`);
}

function hasColors(output: Writable): boolean {
  return "isTTY" in output && output.isTTY === true;
}

async function save(talk: Talk): Promise<boolean> {
  const { setup, values, streams } = talk;
  const { output } = streams;
  const { text: lines, problems } = setup.toEnvFile(values);
  show(output, "Configuration", problems.map(toWrong));
  if (lines === "") return false;
  const target = setup.target();
  const options = [
    ...(target === undefined || problems.length > 0 ? [] : [{ value: "write", label: `Write them to ${target}` }]),
    { value: "show", label: "Show the lines, secrets included" },
  ];
  const message = "These values go into the file .env. Its other lines stay as they are, and only you can read it.";
  if ((await ask(select({ message, options, showInstructions: false, ...streams }))) === "show") {
    output.write(`\n${lines}\n`);
    showGreetings(talk);
    outro(
      "Save these lines as .env in the folder where you start Palaver, and make that file readable only by you (mode 600).",
      { output },
    );
    return true;
  }
  const failures = setup.save(values);
  show(output, "Configuration", failures.map(toWrong));
  if (failures.length > 0) {
    outro("Nothing was written.", { output });
    return false;
  }
  showGreetings(talk);
  outro("Saved. Start Palaver with: npm start", { output });
  return true;
}

/** Says what to write to the bot first, and that the log reports its arrival. */
function showGreetings({ setup, values, done, streams }: Talk): void {
  const greetings = setup
    .steps(values)
    .flatMap(({ id, greeting }) => (greeting !== undefined && done.has(id) ? [greeting] : []));
  if (greetings.length === 0) return;
  log.step(
    `Once it runs:\n${greetings.join("\n")}\nnpm start then reports the first message of each platform.`,
    streams,
  );
}

function toWrong(what: string): Finding {
  return { ok: false, what };
}
