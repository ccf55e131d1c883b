import { html, nothing, render, type TemplateResult } from "lit-html";
import { describeProblem, getJson, postJson } from "./requests.ts";
import { type Filled, panelView, SAVE, type SetupActions, wayOf } from "./setup-view.ts";
import type { EnvFile, Finding, SetupOffer, SetupStep, SetupValues } from "./wire.ts";

/** The platforms are asked several things, one after another. */
const CHECK_MS = 70_000;

export interface SetupPanel {
  /** Asks the server for the steps; draws when there are any. */
  load(): Promise<void>;
  /** The buttons that begin it, in an empty chat. */
  offersView(): TemplateResult | typeof nothing;
}

/** The first run: connects platforms and a gateway, and ends with the lines for `.env`. */
export function createSetupPanel(changed: () => void): SetupPanel {
  let dialog: HTMLDialogElement | undefined;
  const panel: Panel = {
    offer: { steps: [], target: null, isLocked: false },
    filled: createFilled(),
    draw() {
      if (dialog !== undefined) render(panelView(panel.offer, panel.filled, actions), dialog);
    },
    close: () => dialog?.close(),
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
    file: undefined,
    isSaved: false,
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
      delete filled.findings[step.id];
      // Another way has another address, which must not receive the key of this one.
      for (const { name, kind } of wayOf(step, filled).fields) if (kind === "secret") delete filled.values[name];
      begin(step.id, panel);
      panel.draw();
    },
    write(name, value) {
      filled.values[name] = value;
      filled.isSaved = false;
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
      }).then(reveal),
    listModels: (stepId) =>
      ask(async () => {
        const answer = await post("models", { values: readChosen(panel) }, CHECK_MS);
        const { models, findings } = answer as { models: string[]; findings: Finding[] };
        filled.models = models;
        filled.findings[stepId] = findings;
      }).then(reveal),
    save: () =>
      ask(async () => {
        const answer = await post("save", { values: readTouched(panel) });
        const { problems } = answer as Pick<EnvFile, "problems">;
        filled.isSaved = problems.length === 0;
        filled.problem = problems.join(" ");
      }).then(reveal),
  };
}

/** Scrolls to the result of a press: it stands under the button, which may be at the end of a phone's screen. */
function reveal(): void {
  document.querySelector("dialog.setup :is(.findings, .problem, .done)")?.scrollIntoView({ block: "nearest" });
}

/** Values of the chosen ways; those of other ways are left out. */
function readChosen({ offer, filled }: Panel): SetupValues {
  const fields = offer.steps.flatMap((step) => wayOf(step, filled).fields);
  const used = fields.flatMap(({ name }) => (filled.values[name] ? [[name, filled.values[name]] as const] : []));
  const page = filled.values["LOCAL_CHAT"] ?? "";
  return { ...Object.fromEntries(used), ...(page !== "" && { LOCAL_CHAT: page }) };
}

/** The values of the steps in which a person changed something. */
function readTouched(panel: Panel): SetupValues {
  const all = readChosen(panel);
  const idle = panel.offer.steps
    .map((step) => wayOf(step, panel.filled).fields)
    .filter((fields) => !fields.some(({ name, value }) => all[name] && all[name] !== value));
  const names = new Set(idle.flat().map(({ name }) => name));
  return Object.fromEntries(Object.entries(all).filter(([name]) => !names.has(name)));
}

/** Fills in the initial values of a way. */
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
