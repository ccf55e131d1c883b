import { html, nothing, render, type TemplateResult } from "lit-html";
import { ref } from "lit-html/directives/ref.js";
import { describeCost, describeCount, describeMs, describeShort, sum } from "./format.ts";
import { drawPlot, type Line, type PlotOptions } from "./plot.ts";
import { ask, follow } from "./requests.ts";
import { empty, problem, table, type View } from "./view.ts";
import { type Percentiles, RANGE_NAMES, type RangeName, type Subject, type Trends } from "./wire.ts";

const RANGE_WORDS: Readonly<Record<RangeName, string>> = {
  hour: "1 hour",
  day: "24 hours",
  week: "7 days",
  month: "30 days",
  quarter: "90 days",
};
/** Colours by outcome, in the order in which they are stacked; what is not named here comes after them. */
const OUTCOMES = {
  complete: 0,
  waiting: 5,
  stopped: 4,
  length: 1,
  filtered: 3,
  shutdown: 3,
  interrupted: 1,
  failed: 2,
};
const VOTES = { good: 0, bad: 2 };
const PICTURES = { drawn: 0, stopped: 4, failed: 2 };

/** Counts and times over up to 90 days. */
export const openTrends: View = (root) => {
  let range: RangeName = "hour";
  let trends: Trends | undefined;
  let words = "";
  let ends: Array<() => void> = [];

  function endPlots(): void {
    for (const end of ends) end();
    ends = [];
  }

  function show(): void {
    endPlots();
    const wanted: Plots = new Map();
    render(toPage(range, trends, words, choose, wanted), root);
    // Only what stands in the page has a size and colours.
    ends = [...wanted].map(([element, options]) => drawPlot(element, options));
  }

  function choose(name: RangeName): void {
    range = name;
    show();
    following.look();
  }

  show();
  const following = follow(
    () => `trends/${range}`,
    ask<Trends>,
    (found, problem) => {
      trends = found ?? trends;
      words = problem;
      show();
    },
  );
  const colors = matchMedia("(prefers-color-scheme: dark)");
  colors.addEventListener("change", show);
  return () => {
    following.end();
    colors.removeEventListener("change", show);
    endPlots();
  };
};

/** The plots by the elements that hold them. */
type Plots = Map<HTMLElement, PlotOptions>;

function toPage(
  range: RangeName,
  trends: Trends | undefined,
  words: string,
  choose: (name: RangeName) => void,
  plots: Plots,
): TemplateResult {
  const choice = (name: RangeName) => html`
    <label><input type="radio" name="range" value=${name} .checked=${name === range} @change=${() => choose(name)} /><span>${RANGE_WORDS[name]}</span></label>`;
  return html`
    <div class="head">
      <h1>Trends</h1>
      <fieldset class="ranges"><legend class="unseen">Range</legend>${RANGE_NAMES.map(choice)}</fieldset>
    </div>
    ${words === "" ? nothing : problem(words)}
    ${trends === undefined ? empty("Looking …") : toCharts(trends, plots)}
  `;
}

function toCharts(trends: Trends, plots: Plots): TemplateResult {
  const { at, counts, times, tokens, costs, subjects, since } = trends;
  const stacked = (lines: Line[], describe = describeShort) => ({ at, lines, isStacked: true, describe });
  const chart = (title: string, options: PlotOptions, about: string) => toChart(title, options, about, plots);
  const turns = toLines(counts.turns, OUTCOMES);
  const { reason: reasons = [], ...judged } = counts.votes;
  const votes = toLines(judged, VOTES);
  const pictures = toLines(counts.pictures, PICTURES);
  const spent: Line[] = Object.entries(costs).map(([name, values], color) => ({ name, values, color }));
  const used: Line[] = [
    { name: "read", values: tokens.prompt, color: 0 },
    { name: "written", values: tokens.completion, color: 1 },
  ];
  return html`
    <div class="charts">
      ${chart("Turns by outcome", stacked(turns), describeSum(turns, "turn"))}
      ${toTimes("Time to the first token", times.firstToken["all"], at, plots)}
      ${toTimes("Time to the first visible text", times.firstVisible["all"], at, plots)}
      ${toTimes("Lag of what people see", times.lag["all"], at, plots)}
      ${chart("Tokens", stacked(used), describeSum(used, "token"))}
      ${spent.length > 0 ? chart("Cost", stacked(spent, describeCost), spent.map(({ name, values }) => `${describeCost(total(values))} ${name}`).join(", ")) : nothing}
      ${chart("Votes", stacked(votes), votes.length === 0 ? "none" : [...votes, { name: "with a reason", values: reasons }].map(({ name, values }) => `${describeCount(total(values))} ${name}`).join(", "))}
      ${pictures.length > 0 ? chart("Pictures", stacked(pictures), describeSum(pictures, "picture")) : nothing}
    </div>
    <div class="pair">
      <section><h2>Refusals by kind</h2>${toTotals("Refusals by kind", { ...counts.refusals }, "Nothing was refused.")}</section>
      <section><h2>Retries of the gateway</h2>${toTotals("Retries of the gateway", { ...counts.retries }, "Nothing was asked twice.")}</section>
    </div>
    <section><h2>Tool times</h2>${toTools(times.tool, counts.tools)}</section>
    <p class="hint">Turns, pictures, calls of tools and failures are counted exactly, also where processes are killed. Times, refusals, retries and votes are counted by each process and brought together at the end of an answer, or every 30 seconds: what a killed process counted since then is missing.</p>
    <h2 class="above">What was used, since ${since} (UTC)</h2>
    <div class="pair">
      ${toSubjects("Model", subjects.model)} ${toSubjects("Channel", subjects.channel)}
      ${toSubjects("Person", subjects.person)} ${toSubjects("Workspace", subjects.workspace)}
    </div>
  `;
}

function toTimes(title: string, times: Percentiles | undefined, at: number[], plots: Plots): TemplateResult {
  const { p50 = [], p95 = [], p99 = [], all } = times ?? {};
  const lines = [
    { name: "p50", values: p50, color: 0 },
    { name: "p95", values: p95, color: 1 },
    { name: "p99", values: p99, color: 2 },
  ];
  const about = all
    ? `p50 ${describeMs(all.p50)}, p95 ${describeMs(all.p95)}, p99 ${describeMs(all.p99)}`
    : "nothing measured";
  return toChart(title, { at, lines: all ? lines : [], isStacked: false, describe: describeMs }, about, plots);
}

function toChart(title: string, options: PlotOptions, about: string, plots: Plots): TemplateResult {
  const { lines } = options;
  const draw = (element: Element | undefined) => {
    if (element instanceof HTMLElement) plots.set(element, options);
  };
  const key = ({ name, color }: Line) => html`<li><span class="key plot-${(color % 6) + 1}"></span>${name}</li>`;
  return html`
    <figure>
      <figcaption><h2>${title}</h2><p class="hint">${about}</p></figcaption>
      ${
        lines.length === 0
          ? empty("Nothing in this time.")
          : html`<div class="plot" role="img" aria-label="${title}: ${about}" ${ref(draw)}></div>
              <ul class="legend">${lines.map(key)}</ul>`
      }
    </figure>
  `;
}

function toLines(series: Readonly<Record<string, number[]>>, colors: Readonly<Record<string, number>>): Line[] {
  const order = Object.keys(colors);
  const names = [...order.filter((name) => name in series), ...Object.keys(series).filter((name) => !(name in colors))];
  return names.map((name) => ({ name, values: series[name] ?? [], color: colors[name] ?? 4 }));
}

function total(values: Line["values"]): number {
  return sum(values.map((value) => value ?? 0));
}

function describeSum(lines: readonly Line[], what: string): string {
  const count = totalOf(lines);
  return `${describeCount(count)} ${what}${count === 1 ? "" : "s"}`;
}

function totalOf(lines: readonly Line[]): number {
  return sum(lines.map(({ values }) => total(values)));
}

function toTotals(caption: string, series: Readonly<Record<string, number[]>>, none: string): TemplateResult {
  const rows = Object.entries(series)
    .map(([name, values]) => ({ name, count: sum(values) }))
    .filter(({ count }) => count > 0)
    .toSorted((one, other) => other.count - one.count);
  if (rows.length === 0) return empty(none);
  return table(
    caption,
    [
      { title: "Kind", cell: ({ name }) => name },
      { title: "Count", isNumber: true, cell: ({ count }) => describeCount(count) },
    ],
    rows,
  );
}

function toTools(
  times: Readonly<Record<string, Percentiles>>,
  counts: Readonly<Record<string, number[]>>,
): TemplateResult {
  const names = new Set([...Object.keys(counts), ...Object.keys(times).filter((name) => name !== "all")]);
  const rows = [...names]
    // A call whose process died in it has no time; of the oldest calls there are times alone.
    .map((name) => ({ name, calls: Math.max(sum(counts[name] ?? []), times[name]?.count ?? 0), all: times[name]?.all }))
    .toSorted((one, other) => other.calls - one.calls);
  if (rows.length === 0) return empty("No tool was called.");
  const time = (ms: number | undefined) => (ms === undefined ? "–" : describeMs(ms));
  return table(
    "Tool times",
    [
      { title: "Tool", cell: ({ name }) => html`<code>${name}</code>` },
      { title: "Calls", isNumber: true, cell: ({ calls }) => describeCount(calls) },
      { title: "p50", isNumber: true, cell: ({ all }) => time(all?.p50) },
      { title: "p95", isNumber: true, cell: ({ all }) => time(all?.p95) },
      { title: "p99", isNumber: true, cell: ({ all }) => time(all?.p99) },
    ],
    rows,
  );
}

function toSubjects(title: string, subjects: readonly Subject[]): TemplateResult {
  const optional = [
    {
      title: "Pictures",
      isNumber: true,
      cell: ({ pictures }: Subject) => describeCount(pictures),
      is: subjects.some(({ pictures }) => pictures > 0),
    },
    {
      title: "Cost",
      isNumber: true,
      cell: ({ cost }: Subject) => cost || "–",
      is: subjects.some(({ cost }) => cost !== ""),
    },
  ];
  const columns = [
    { title, cell: ({ name }: Subject) => name },
    { title: "Answers", isNumber: true, cell: ({ answers }: Subject) => describeCount(answers) },
    { title: "Tokens", isNumber: true, cell: ({ tokens }: Subject) => describeCount(tokens) },
    ...optional.filter(({ is }) => is),
  ];
  const name = title.toLowerCase();
  return html`
    <section class="close">
      <h3>By ${name}</h3>
      ${subjects.length === 0 ? empty("Nothing in this time.") : table(`What was used, by ${name}`, columns, subjects)}
    </section>`;
}
