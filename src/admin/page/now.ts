import { html, nothing, render, type TemplateResult } from "lit-html";
import { describeBytes, describeMs, describePlace, sum } from "./format.ts";
import { ask, describeFailure } from "./requests.ts";
import { announce, type Column, empty, problem, table, type View } from "./view.ts";
import type { Now, ProcessReport, Story } from "./wire.ts";

const RETRY_MS = 2_000;
/** An answer that still runs this long after its Stop can be stopped once more. */
const STOP_AGAIN_MS = 5_000;

/** The running work of all processes, live. */
export const openNow: View = (root) => {
  let source: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let now: Now | undefined;
  let isConnected = false;
  /** Turns whose end was asked for. */
  const stopping = new Set<string>();
  let refusal = "";

  async function stop(turnId: string): Promise<void> {
    stopping.add(turnId);
    setTimeout(() => stopping.delete(turnId), STOP_AGAIN_MS);
    refusal = "";
    show();
    try {
      await ask(`turns/${turnId}/stop`, { method: "POST" });
      announce("The answer is being stopped.");
    } catch (error) {
      stopping.delete(turnId);
      refusal = describeFailure(error);
      show();
    }
  }

  function show(): void {
    render(toPage(now, { isConnected, stopping, refusal, stop: (turnId) => void stop(turnId) }), root);
  }

  function open(): void {
    source = new EventSource("/admin/api/live");
    source.addEventListener("now", ({ data }) => {
      now = JSON.parse(data as string) as Now;
      isConnected = true;
      show();
    });
    source.addEventListener("error", () => {
      source?.close();
      isConnected = false;
      show();
      // The answer says so when the session is over.
      void ask("turns").catch(() => {});
      timer = setTimeout(open, RETRY_MS);
    });
  }

  show();
  open();
  return () => {
    clearTimeout(timer);
    source?.close();
  };
};

interface Doing {
  isConnected: boolean;
  stopping: ReadonlySet<string>;
  refusal: string;
  stop(turnId: string): void;
}

function toPage(now: Now | undefined, doing: Doing): TemplateResult {
  const light = doing.isConnected
    ? html`<span class="light ok"></span>live`
    : html`<span class="light"></span>connecting …`;
  const head = html`<div class="head"><h1>Now</h1><p class="hint connection">${light}</p></div>`;
  if (now === undefined) return html`${head}${empty("Looking …")}`;
  if (now.problem !== null) return html`${head}${problem(now.problem)}`;
  const { processes, at } = now;
  const running = processes
    .flatMap((process) => process.running)
    .toSorted((one, other) => one.acceptedAt - other.acceptedAt);
  return html`
    ${head}
    ${toFigures(processes, running)}
    ${doing.refusal === "" ? nothing : problem(doing.refusal)}
    <section aria-labelledby="running-title">
      <h2 id="running-title">Running turns</h2>
      ${running.length === 0 ? empty("Nothing is being answered.") : table("Running turns", toTurnColumns(at, doing), running)}
    </section>
    <section aria-labelledby="processes-title">
      <h2 id="processes-title">Processes</h2>
      ${table("Processes", toProcessColumns(at), processes)}
    </section>
    <div class="pair">
      <section aria-labelledby="budgets-title"><h2 id="budgets-title">Budgets</h2>${toBudgets(processes)}</section>
      <section aria-labelledby="breakers-title"><h2 id="breakers-title">Gateway and breakers</h2>${toBreakers(processes)}</section>
    </div>
  `;
}

function toFigures(processes: readonly ProcessReport[], running: readonly Story[]): TemplateResult {
  const places = sum(processes.map((one) => one.places));
  // Each process counts what waits in the queue that all of them share.
  const waiting = Math.max(0, ...processes.map((one) => one.waiting));
  const figures = [
    { name: "running", value: String(running.length) },
    { name: "waiting or being answered", value: String(waiting) },
    { name: "places taken", value: `${sum(processes.map(({ active }) => active))} of ${places}` },
    { name: `process${processes.length === 1 ? "" : "es"}`, value: String(processes.length) },
  ];
  return html`<dl class="figures">${figures.map(({ name, value }) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

function toTurnColumns(at: number, { stopping, stop }: Doing): Array<Column<Story>> {
  const since = (from: number, to: number | undefined) => (to === undefined ? "–" : describeMs(Math.max(0, to - from)));
  return [
    { title: "Where", cell: ({ reply }) => describePlace(reply) },
    { title: "Who", cell: ({ author }) => author.name },
    { title: "Model", cell: ({ model }) => model },
    { title: "State", cell: ({ state, retries }) => `${state}${retries > 0 ? `, asked ${retries + 1} times` : ""}` },
    { title: "Age", isNumber: true, cell: ({ acceptedAt }) => since(acceptedAt, at) },
    { title: "First token", isNumber: true, cell: ({ acceptedAt, firstTokenAt }) => since(acceptedAt, firstTokenAt) },
    { title: "Lag", isNumber: true, cell: ({ lagMs, shown }) => (shown === 0 ? "–" : describeMs(lagMs)) },
    { title: "Process", cell: ({ process }) => process },
    {
      title: "Stop",
      cell: ({ turnId, author, reply }) => html`
        <button class="danger" ?disabled=${stopping.has(turnId)} @click=${() => stop(turnId)}
          aria-label=${`Stop the answer to ${author.name} at ${describePlace(reply)}`}>
          ${stopping.has(turnId) ? "Stopping …" : "Stop"}
        </button>`,
    },
  ];
}

function toProcessColumns(at: number): Array<Column<ProcessReport>> {
  const hears = ({ platforms }: ProcessReport) => {
    const known = Object.entries(platforms);
    if (known.length === 0) return "–";
    return known.map(
      ([name, isUp]) => html`<span class="tag ${isUp ? "ok" : "bad"}">${name}${isUp ? "" : " is away"}</span> `,
    );
  };
  return [
    { title: "Name", cell: ({ name }) => name },
    { title: "Role", cell: ({ role }) => role },
    { title: "Hears", cell: hears },
    { title: "Store", cell: ({ isStoreReachable }) => toTag(isStoreReachable, "reachable", "away") },
    { title: "Places", isNumber: true, cell: ({ active, places }) => `${active} of ${places}` },
    { title: "Loop lag", isNumber: true, cell: ({ loopLagMs }) => describeMs(loopLagMs) },
    { title: "Memory", isNumber: true, cell: ({ memoryBytes }) => describeBytes(memoryBytes) },
    { title: "Up for", isNumber: true, cell: ({ startedAt }) => describeMs(Math.max(0, at - startedAt)) },
    { title: "Version", cell: ({ version }) => version },
  ];
}

function toTag(isWell: boolean, yes: string, no: string): TemplateResult {
  return html`<span class="tag ${isWell ? "ok" : "bad"}">${isWell ? yes : no}</span>`;
}

function toBudgets(processes: readonly ProcessReport[]): TemplateResult {
  const rows = processes.flatMap(({ name, budgets }) => budgets.map((budget) => ({ ...budget, name })));
  if (rows.length === 0) return empty("Nothing is being written, so no limit of a platform is in use.");
  return table(
    "Limits of platforms under which replies are written",
    [
      { title: "Limit", cell: ({ key }) => html`<code>${key}</code>` },
      { title: "Replies", isNumber: true, cell: ({ replies }) => replies },
      {
        title: "Next call in",
        isNumber: true,
        cell: ({ nextInMs }) => (nextInMs === null ? "–" : describeMs(nextInMs)),
      },
      { title: "Process", cell: ({ name }) => name },
    ],
    rows,
  );
}

function toBreakers(processes: readonly ProcessReport[]): TemplateResult {
  const rows = processes.flatMap(({ name, gateway, breakers }) => [
    { process: name, name: "Gateway", state: gateway },
    ...breakers.map((breaker) => ({ process: name, ...breaker })),
  ]);
  const isWell = (state: string) => /^(ok|closed|not known yet|the embedded sandbox)$/.test(state);
  return table(
    "Gateway and breakers",
    [
      { title: "What", cell: ({ name }) => name },
      { title: "State", cell: ({ state }) => toTag(isWell(state), state, state) },
      { title: "Process", cell: ({ process }) => process },
    ],
    rows,
  );
}
