import { html, nothing, render, type TemplateResult } from "lit-html";
import {
  describeBytes,
  describeCount,
  describeMoment,
  describeMs,
  describeReason,
  isAnswered,
  isFine,
  sum,
} from "./format.ts";
import { ask, describeFailure, follow } from "./requests.ts";
import { announce, type Column, empty, placeOf, problem, table, type View } from "./view.ts";
import type { Findings, Month, NamedReport, NamedStory, Now, Overview, Spent } from "./wire.ts";

const RETRY_MS = 2_000;
/** If an answer still runs this long after a Stop, its Stop button can be pressed again. */
const STOP_AGAIN_MS = 5_000;
const WORKING = new Set(["ok", "not known yet", "the embedded sandbox"]);

export const openOverview: View = (root) => {
  let source: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let now: Now | undefined;
  let overview: Overview | undefined;
  let findings: Findings | undefined;
  let isConnected = false;
  const stopping = new Set<string>();
  let refusal = "";
  let trouble = "";

  async function stop(turnId: string): Promise<void> {
    stopping.add(turnId);
    setTimeout(() => stopping.delete(turnId), STOP_AGAIN_MS);
    refusal = "";
    show();
    try {
      await ask(`turns/${turnId}/stop`, { method: "POST" });
      announce("Stopping the answer.");
    } catch (error) {
      stopping.delete(turnId);
      refusal = describeFailure(error);
      show();
    }
  }

  async function examine(): Promise<void> {
    findings = await ask<Findings>("doctor");
    if (findings.latest === null) findings = await ask<Findings>("doctor", { method: "POST" });
    show();
  }

  function show(): void {
    const words = [refusal, trouble].filter(Boolean).map(problem);
    const light = isConnected
      ? html`<span class="light ok"></span>live`
      : html`<span class="light"></span>connecting …`;
    const page = html`
      <div class="head"><h1>Overview</h1><p class="hint connection">${light}</p></div>
      ${words}
      ${now === undefined ? empty("Loading …") : toState(now, findings, overview)}
      ${overview === undefined ? nothing : toPast(overview)}
      ${now === undefined || now.problem !== null ? nothing : toRunning(now, { stopping, stop: (turnId) => void stop(turnId) })}
      ${now === undefined || now.problem !== null ? nothing : toInside(now)}
    `;
    render(page, root);
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
      void ask("turns").catch(() => {});
      timer = setTimeout(open, RETRY_MS);
    });
  }

  show();
  open();
  void examine().catch(() => {});
  const following = follow(
    () => "overview",
    ask<Overview>,
    (found, words) => {
      overview = found ?? overview;
      trouble = words;
      show();
    },
  );
  return () => {
    clearTimeout(timer);
    source?.close();
    following.end();
  };
};

function toState(
  { processes, problem: outage }: Now,
  findings: Findings | undefined,
  overview: Overview | undefined,
): TemplateResult {
  if (outage !== null) return problem(outage);
  const running = sum(processes.map((process) => process.running.length));
  const [taken, places] = [sum(processes.map(({ active }) => active)), sum(processes.map((one) => one.places))];
  // Every process reports the same number: the shared queue's waiting messages plus those that are being answered.
  const waiting = Math.max(0, Math.max(0, ...processes.map((one) => one.waiting)) - taken);
  const examined = findings?.latest?.sections;
  const wrong = (examined ?? []).flatMap((section) => section.findings).filter(({ ok }) => !ok);
  const failed = sumOf(overview, (outcome) => !isFine(outcome));
  const answered = sumOf(overview, isAnswered);
  const states = toStates(processes);
  const troubles = [
    ...states.filter(({ isWell }) => !isWell).map(({ name, state }) => `${name}: ${state}`),
    ...(places === 0 ? ["no process is answering questions"] : []),
    ...(waiting > 0 && taken >= places ? ["all answer slots are in use"] : []),
    ...(wrong.length > 0 ? [`the doctor found ${count(wrong.length, "problem")}`] : []),
  ];
  const doctor =
    examined === undefined
      ? html`<span class="tag">Doctor: checking …</span>`
      : html`<a class="tag ${wrong.length === 0 ? "ok" : "bad"}" href="/admin/doctor">Doctor: ${wrong.length === 0 ? "all in order" : count(wrong.length, "problem")}</a>`;
  const figures: Array<[name: string, value: string]> = [
    [`answers running, of ${places} slots`, String(running)],
    ["questions waiting", String(waiting)],
    ["answered in 24 hours", overview ? describeCount(answered) : "…"],
    ["failed in 24 hours", overview ? describeCount(failed) : "…"],
  ];
  return html`
    <section class="state ${troubles.length === 0 ? "ok" : "bad"}" aria-label="State">
      <p><strong>${troubles.length === 0 ? "Palaver is running, and everything works." : `Needs attention: ${troubles.join(", ")}.`}</strong></p>
      <p class="tags">${states.map(({ name, isWell, state }) => html`<span class="tag ${isWell ? "ok" : "bad"}">${name}: ${state}</span> `)}${doctor}</p>
    </section>
    <dl class="figures">${figures.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
  `;
}

/** Lists everything that the processes depend on, and whether it works for each of them. */
function toStates(processes: readonly NamedReport[]): Array<{ name: string; isWell: boolean; state: string }> {
  const platforms = Map.groupBy(
    processes.flatMap((one) => Object.entries(one.platforms)),
    ([name]) => name,
  );
  const gateway = processes.map((one) => one.gateway).find((state) => !WORKING.has(state)) ?? processes[0]?.gateway;
  const paused = Math.max(0, ...processes.map((one) => one.pausedModels));
  const hasStore = processes.every(({ isStoreReachable }) => isStoreReachable);
  return [
    ...[...platforms].map(([name, among]) => {
      const isWell = among.every(([, isUp]) => isUp);
      return {
        name: name.charAt(0).toUpperCase() + name.slice(1),
        isWell,
        state: isWell ? "connected" : "disconnected",
      };
    }),
    { name: "AI service", isWell: WORKING.has(gateway ?? "ok"), state: gateway ?? "not known yet" },
    ...(paused === 0 ? [] : [{ name: "Models", isWell: false, state: `${paused} paused after failures` }]),
    { name: "Storage", isWell: hasStore, state: hasStore ? "available" : "unavailable" },
  ];
}

function sumOf(overview: Overview | undefined, isWanted: (outcome: string) => boolean): number {
  return sum(Object.entries(overview?.turns ?? {}).map(([outcome, number]) => (isWanted(outcome) ? number : 0)));
}

interface Stopping {
  stopping: ReadonlySet<string>;
  stop(turnId: string): void;
}

function toRunning({ processes, at }: Now, doing: Stopping): TemplateResult {
  const running = processes
    .flatMap((process) => process.running)
    .toSorted((one, other) => one.acceptedAt - other.acceptedAt);
  return html`
    <section>
      <h2>Running answers</h2>
      ${running.length === 0 ? empty("No answer is running.") : table("Running answers", toTurnColumns(at, doing), running)}
    </section>`;
}

function toTurnColumns(at: number, { stopping, stop }: Stopping): Array<Column<NamedStory>> {
  const since = (from: number, to: number | undefined) => (to === undefined ? "–" : describeMs(Math.max(0, to - from)));
  return [
    { title: "Where", cell: placeOf },
    { title: "Who", cell: ({ author }) => author.name },
    { title: "Model", isMinor: true, cell: ({ model }) => model },
    { title: "State", cell: ({ state, retries }) => `${state}${retries > 0 ? `, asked ${retries + 1} times` : ""}` },
    { title: "Age", isNumber: true, isMinor: true, cell: ({ acceptedAt }) => since(acceptedAt, at) },
    {
      title: "First text",
      isNumber: true,
      isMinor: true,
      cell: ({ acceptedAt, firstTokenAt }) => since(acceptedAt, firstTokenAt),
    },
    {
      title: "Behind",
      isNumber: true,
      isMinor: true,
      cell: ({ lagMs, shown }) => (shown === 0 ? "–" : describeMs(lagMs)),
    },
    {
      title: "Stop",
      cell: ({ turnId, author, place }) => html`
        <button class="danger" ?disabled=${stopping.has(turnId)} @click=${() => stop(turnId)}
          aria-label=${`Stop the answer to ${author.name} at ${place}`}>
          ${stopping.has(turnId) ? "Stopping …" : "Stop"}
        </button>`,
    },
  ];
}

function toPast(overview: Overview): TemplateResult {
  return html`
    <div class="pair">
      <section><h2>Failed in the last 24 hours</h2>${toFailures(overview)}</section>
      <section><h2>Ratings</h2>${toVotes(overview)}</section>
    </div>
    ${toMonth(overview.month)}
  `;
}

function toFailures({ failures, pictures }: Overview): TemplateResult {
  const reasons = [...Map.groupBy(failures, describeReason)].toSorted(
    ([, one], [, other]) => other.length - one.length,
  );
  const drawn = pictures["failed"] ?? 0;
  return html`
    ${
      reasons.length === 0
        ? empty("No answer failed.")
        : table(
            "Failures by reason",
            [
              {
                title: "Reason",
                cell: ([reason]) => html`<a href="/admin/failures?reason=${encodeURIComponent(reason)}">${reason}</a>`,
              },
              { title: "Times", isNumber: true, cell: ([, among]) => describeCount(among.length) },
              {
                title: "Latest",
                isMinor: true,
                cell: ([, [latest]]) =>
                  latest && html`${describeMoment(latest.acceptedAt)}, ${latest.author.name} · ${placeOf(latest)}`,
              },
            ],
            reasons,
          )
    }
    ${drawn === 0 ? nothing : html`<p class="hint">${count(drawn, "image")} could not be created; the log says why.</p>`}
  `;
}

/** SVG paths, copied from the buttons of the chat page. */
const GOOD = "M7 20V10l4-7a2.3 2.3 0 0 1 2.3 2.3V9h5.2a2 2 0 0 1 2 2.3l-1.2 7A2 2 0 0 1 17.3 20ZM7 10H3.5v10H7";
const BAD = "M17 4v10l-4 7a2.3 2.3 0 0 1-2.3-2.3V15H5.5a2 2 0 0 1-2-2.3l1.2-7A2 2 0 0 1 6.7 4ZM17 14h3.5V4H17";

function vote(shape: string): TemplateResult {
  return html`<svg class="vote" viewBox="0 0 24 24" aria-hidden="true"><path d=${shape} /></svg>`;
}

function toVotes({ votes: { good, bad }, judgements }: Overview): TemplateResult {
  const line = ({ isGood, reason, by, place, askedAt, turnId }: Overview["judgements"][number]) => html`
    <li>
      <span class="tag ${isGood ? "ok" : "bad"}">${isGood ? "good" : "bad"}</span>
      <span>${reason === undefined ? html`<span class="hint">no reason given</span>` : html`“${reason}”`}
        <span class="hint">– ${by}, <a href="/admin/conversations?find=${encodeURIComponent(turnId)}">answer of ${describeMoment(askedAt)}</a> in ${place}</span></span>
    </li>`;
  return html`
    <p class="tags"><span class="tag ok">${vote(GOOD)} ${describeCount(good)} good</span> <span class="tag bad">${vote(BAD)} ${describeCount(bad)} bad</span> <span class="hint">in 30 days</span></p>
    ${judgements.length === 0 ? empty("No bad ratings and no reasons among the latest 500 answers.") : html`<ul class="judgements">${judgements.map(line)}</ul>`}
  `;
}

function toMonth({ month, all, unpriced, people, places, models }: Month): TemplateResult {
  const name = new Date(`${month}-01T00:00:00Z`).toLocaleDateString("en-GB", {
    month: "long",
    year: "numeric",
    timeZone: "UTC",
  });
  const sums = [count(all.answers, "answer"), count(all.tokens, "token"), count(all.pictures, "image")].join(", ");
  const missing =
    unpriced === 0
      ? ""
      : all.cost === ""
        ? "Unknown cost: the policy file has no prices."
        : `Not included: ${count(unpriced, "request")} to models without a price.`;
  return html`
    <section>
      <h2>Cost in ${name}</h2>
      <p class="cost"><strong>${all.cost || "–"}</strong> <span class="hint">${sums}. ${missing}</span></p>
      <div class="pair">
        ${toSpent("Person", people)} ${toSpent("Channel", places)} ${models.length > 1 ? toSpent("Model", models) : nothing}
      </div>
    </section>`;
}

function toSpent(title: string, spent: readonly Spent[]): TemplateResult {
  const columns: Array<Column<Spent> & { is: boolean }> = [
    { title, is: true, cell: ({ name }) => name },
    { title: "Cost", isNumber: true, is: spent.some(({ cost }) => cost !== ""), cell: ({ cost }) => cost || "–" },
    { title: "Answers", isNumber: true, is: true, cell: ({ answers }) => describeCount(answers) },
    { title: "Tokens", isNumber: true, isMinor: true, is: true, cell: ({ tokens }) => describeCount(tokens) },
    {
      title: "Images",
      isNumber: true,
      isMinor: true,
      is: spent.some(({ pictures }) => pictures > 0),
      cell: ({ pictures }) => describeCount(pictures),
    },
  ];
  const caption = `By ${title.toLowerCase()}`;
  const list = table(
    caption,
    columns.filter(({ is }) => is),
    spent,
  );
  return html`<section class="close"><h3>${caption}</h3>${spent.length === 0 ? empty("Nothing yet.") : list}</section>`;
}

function toInside({ processes, at }: Now): TemplateResult {
  const budgets = processes.flatMap(({ name, budgets }) => budgets.map((budget) => ({ ...budget, name })));
  return html`
    <details>
      <summary>Processes and rate limits</summary>
      ${table("Processes", toProcessColumns(at), processes)}
      ${budgets.length === 0 ? nothing : table("Rate limits of platforms in use", BUDGET_COLUMNS, budgets)}
    </details>`;
}

const BUDGET_COLUMNS: ReadonlyArray<Column<NamedReport["budgets"][number] & { name: string }>> = [
  { title: "Rate limit", cell: ({ key }) => html`<code>${key}</code>` },
  { title: "Replies", isNumber: true, cell: ({ replies }) => replies },
  { title: "Next call in", isNumber: true, cell: ({ nextInMs }) => (nextInMs === null ? "–" : describeMs(nextInMs)) },
  { title: "Process", cell: ({ name }) => name },
];

function toProcessColumns(at: number): Array<Column<NamedReport>> {
  const tag = (isWell: boolean, words: string) => html`<span class="tag ${isWell ? "ok" : "bad"}">${words}</span> `;
  const hears = ({ platforms }: NamedReport) => {
    const known = Object.entries(platforms);
    return known.length === 0 ? "–" : known.map(([name, isUp]) => tag(isUp, isUp ? name : `${name} is away`));
  };
  return [
    { title: "Process", cell: ({ name }) => name },
    { title: "Role", cell: ({ role }) => role },
    { title: "Receives from", cell: hears },
    { title: "Storage", cell: ({ isStoreReachable: isUp }) => tag(isUp, isUp ? "available" : "unavailable") },
    { title: "AI service", cell: ({ gateway }) => tag(WORKING.has(gateway), gateway) },
    { title: "Slots in use", isNumber: true, cell: ({ active, places }) => `${active} of ${places}` },
    { title: "Event loop delay", isNumber: true, cell: ({ loopLagMs }) => describeMs(loopLagMs) },
    { title: "Memory", isNumber: true, cell: ({ memoryBytes }) => describeBytes(memoryBytes) },
    { title: "Up for", isNumber: true, cell: ({ startedAt }) => describeMs(Math.max(0, at - startedAt)) },
    { title: "Version", cell: ({ version }) => version },
  ];
}

function count(number: number, noun: string): string {
  return `${describeCount(number)} ${noun}${number === 1 ? "" : "s"}`;
}
