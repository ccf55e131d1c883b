import { html, nothing, render, type TemplateResult } from "lit-html";
import { describeProblem, getJson, postJson } from "./requests.ts";
import { type Arrivals, type Filled, panelView, SAVE, type SetupActions, wayOf } from "./setup-view.ts";
import type { EnvFile, Finding, SetupField, SetupOffer, SetupStep, SetupValues } from "./wire.ts";

/** Longest check: it sends several requests to the platform, one after another. */
const CHECK_MS = 70_000;
const ARRIVALS_MS = 2_000;

export interface SetupPanel {
  load(): Promise<void>;
  offersView(): TemplateResult | typeof nothing;
}

/** The setup: connects platforms and a gateway, and ends with the lines for `.env`. */
export function createSetupPanel(changed: () => void, readAnswering: () => string | undefined): SetupPanel {
  let dialog: HTMLDialogElement | undefined;
  const panel: Panel = {
    offer: { steps: [], target: null, isLocked: false },
    filled: createFilled(),
    draw() {
      if (dialog !== undefined) render(panelView(panel.offer, panel.filled, actions), dialog);
    },
    close: () => dialog?.close(),
    isOpen: () => dialog !== undefined,
    readAnswering,
  };
  const actions = createSetupActions(panel);

  function show(part: string): void {
    dialog = document.createElement("dialog");
    dialog.className = "setup";
    dialog.setAttribute("aria-labelledby", "setup-title");
    document.body.append(dialog);
    dialog.addEventListener("close", () => {
      dialog?.remove();
      dialog = undefined;
    });
    actions.open(part);
    dialog.showModal();
  }

  return {
    async load() {
      panel.offer = (await getJson("/local/setup").catch(() => panel.offer)) as SetupOffer;
      if (panel.offer.steps.length > 0 || panel.offer.isLocked) changed();
    },
    offersView() {
      const { steps, isLocked } = panel.offer;
      if (isLocked) {
        return html`<div class="offers"><button type="button" @click=${() => show(SAVE)}>Set up…</button></div>`;
      }
      if (steps.length === 0) return nothing;
      return html`<div class="offers">
        ${steps.map(({ id, title }) => html`<button type="button" @click=${() => show(id)}>${title}</button>`)}
      </div>`;
    },
  };
}

interface Panel {
  offer: SetupOffer;
  filled: Filled;
  draw(): void;
  close(): void;
  isOpen(): boolean;
  readAnswering(): string | undefined;
}

function createFilled(): Filled {
  return {
    adminPassword: "",
    values: {},
    ways: {},
    findings: {},
    part: SAVE,
    isBusy: false,
    models: [],
    listing: [],
    file: undefined,
    isSaved: false,
    isWatching: false,
    arrivals: {},
    answering: undefined,
    problem: "",
  };
}

function createSetupActions(panel: Panel): SetupActions {
  const { filled } = panel;

  async function ask(work: () => Promise<void>): Promise<void> {
    filled.isBusy = true;
    filled.problem = "";
    panel.draw();
    try {
      await work();
    } catch (error) {
      filled.problem = describeProblem(error);
    }
    filled.isBusy = false;
    panel.draw();
  }

  const authorize = (): Record<string, string> =>
    filled.adminPassword === "" ? {} : { "X-Admin-Password": encodeURIComponent(filled.adminPassword.toWellFormed()) };
  const post = (path: string, body: object, timeoutMs?: number) =>
    postJson(`/local/setup/${path}`, body, { headers: authorize(), ...(timeoutMs !== undefined && { timeoutMs }) });

  const compose = () =>
    ask(async () => {
      filled.file = (await post("env", { values: readTouched(panel) })) as EnvFile;
      // Without a file to write, the person saves these lines elsewhere, so the panel starts to watch for messages now.
      if (panel.offer.target === null) void watchArrivals(panel);
    });

  return {
    compose,
    close: panel.close,
    unlock: (adminPassword) =>
      ask(async () => {
        filled.adminPassword = adminPassword;
        panel.offer = (await getJson("/local/setup", authorize())) as SetupOffer;
        const [first] = panel.offer.steps;
        if (first === undefined) return;
        filled.part = first.id;
        begin(first.id, panel);
      }),
    open(part) {
      filled.part = part;
      filled.problem = "";
      if (panel.offer.isLocked) return panel.draw();
      if (part === SAVE) void compose();
      else begin(part, panel);
      panel.draw();
    },
    choose(step, wayId) {
      filled.ways[step.id] = wayId;
      filled.models = [];
      filled.listing = [];
      delete filled.findings[step.id];
      // Drops secrets: another way of setting up has another URL, which must not receive them.
      for (const { name, kind } of wayOf(step, filled).fields) if (kind === "secret") delete filled.values[name];
      begin(step.id, panel);
      panel.draw();
    },
    write(name, value) {
      filled.values[name] = value;
      filled.isSaved = false;
      const step = panel.offer.steps.find((each) => wayOf(each, filled).fields.some((field) => field.name === name));
      if (step === undefined) return;
      delete filled.findings[step.id];
      if (wayOf(step, filled).fields.find((field) => field.name === name)?.kind !== "model") {
        filled.models = [];
        filled.listing = [];
      }
      panel.draw();
    },
    refresh: () =>
      ask(async () => {
        const steps = (await post("steps", { values: readChosen(panel) })) as SetupStep[];
        panel.offer = { ...panel.offer, steps };
      }),
    check: (stepId) =>
      ask(async () => {
        delete filled.findings[stepId];
        const body = { stepId, values: readChosen(panel) };
        filled.findings[stepId] = (await post("check", body, CHECK_MS)) as Finding[];
      }).then(() => reveal("last")),
    listModels: (step) =>
      ask(async () => {
        const answer = await post("models", { values: readChosen(panel) }, CHECK_MS);
        const { models, findings } = answer as { models: string[]; findings: Finding[] };
        filled.models = models;
        filled.listing = models.length === 0 ? findings : [toListed(models)];
        chooseModels(wayOf(step, filled).fields, filled);
      }).then(() => reveal("first")),
    save: () =>
      ask(async () => {
        const answer = await post("save", { values: readTouched(panel) });
        const { problems } = answer as Pick<EnvFile, "problems">;
        filled.isSaved = problems.length === 0;
        filled.problem = problems.join(" ");
        if (filled.isSaved) void watchArrivals(panel);
      }).then(() => reveal("last")),
  };
}

function toListed({ length }: readonly string[]): Finding {
  return { ok: true, what: length === 1 ? "The gateway lists one model." : `The gateway lists ${length} models.` };
}

/** Drops models that the gateway does not list. Selects the only one that can answer, if exactly one is left. */
function chooseModels(fields: readonly SetupField[], { models, values }: Filled): void {
  if (models.length === 0) return;
  for (const { name, kind, isOptional = false } of fields) {
    if (kind !== "model" || models.includes(values[name] ?? "")) continue;
    values[name] = models.length === 1 && !isOptional ? (models[0] ?? "") : "";
  }
}

/** Shows which messages arrive, even after a restart of the service, until the panel closes or values change. */
async function watchArrivals(panel: Panel): Promise<void> {
  const { filled } = panel;
  if (filled.isWatching) return;
  filled.isWatching = true;
  const isDone = () => filled.isSaved || (panel.offer.target === null && filled.part === SAVE);
  while (isDone() && panel.isOpen()) {
    // The request fails between the stop of the old process and the start of the new one.
    filled.arrivals = (await getJson("/arrivals").catch(() => ({}))) as Arrivals;
    filled.answering = panel.readAnswering();
    panel.draw();
    await new Promise((resolve) => setTimeout(resolve, ARRIVALS_MS));
  }
  filled.isWatching = false;
}

/** Scrolls to the result of a press, which is below the button and can be outside a phone's screen. */
function reveal(which: "first" | "last"): void {
  const results = [...document.querySelectorAll("dialog.setup :is(.findings, .problem, .done)")];
  results.at(which === "first" ? 0 : -1)?.scrollIntoView({ block: "nearest" });
}

function readChosen({ offer, filled }: Panel): SetupValues {
  const fields = offer.steps.flatMap((step) => wayOf(step, filled).fields);
  const used = fields.flatMap(({ name }) => (filled.values[name] ? [[name, filled.values[name]] as const] : []));
  const page = filled.values["LOCAL_CHAT"] ?? "";
  return { ...Object.fromEntries(used), ...(page !== "" && { LOCAL_CHAT: page }) };
}

function readTouched(panel: Panel): SetupValues {
  const all = readChosen(panel);
  const idle = panel.offer.steps
    .map((step) => wayOf(step, panel.filled).fields)
    .filter((fields) => !fields.some(({ name, value }) => all[name] && all[name] !== value));
  const names = new Set(idle.flat().map(({ name }) => name));
  return Object.fromEntries(Object.entries(all).filter(([name]) => !names.has(name)));
}

function begin(stepId: string, { offer, filled }: Panel): void {
  const step = offer.steps.find(({ id }) => id === stepId);
  if (step === undefined) return;
  const others = step.ways.flatMap(({ fields }) => fields);
  for (const { name, value = "" } of wayOf(step, filled).fields) {
    const current = filled.values[name] ?? "";
    const isOwn = current !== "" && !others.some((each) => each.name === name && each.value === current);
    if (!isOwn) filled.values[name] = value;
  }
}
