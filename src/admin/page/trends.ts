import { html, nothing, render, type TemplateResult } from "lit-html";
import { ref } from "lit-html/directives/ref.js";
import { describeCost, describeCount, describeMs, describeReason, describeShort, sum } from "./format.ts";
import { drawPlot, type Line, type PlotOptions } from "./plot.ts";
import { ask, follow } from "./requests.ts";
import { empty, problem, table, type View } from "./view.ts";
import { type Percentiles, RANGE_NAMES, type RangeName, type Trends } from "./wire.ts";

const RANGE_WORDS: Readonly<Record<RangeName, string>> = {
  hour: "1 hour",
  day: "24 hours",
  week: "7 days",
  month: "30 days",
  quarter: "90 days",
};
/** Colours by outcome, in stacking order; outcomes without a colour come last. */
const OUTCOMES = {
  complete: 0,
  waiting: 5,
  stopped: 4,
  length: 5,
  filtered: 3,
  shutdown: 3,
  interrupted: 1,
  failed: 2,
};
const VOTES = { good: 0, bad: 2 };
const PICTURES = { drawn: 0, stopped: 4, failed: 2 };

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
    // Draw only now: an element has no size or colours until it is in the page.
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

/** Each plot, by the element that contains it. */
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
    ${trends === undefined ? empty("Loading …") : toCharts(trends, plots)}
  `;
}

function toCharts(trends: Trends, plots: Plots): TemplateResult {
  const { at, counts, times, tokens, costs } = trends;
  const stacked = (lines: Line[], describe = describeShort) => ({ at, lines, isStacked: true, describe });
  const chart = (title: string, options: PlotOptions, about: string) => toChart(title, options, about, plots);
  const turns = toLines(counts.turns, OUTCOMES).map((line) => ({
    ...line,
    name: describeReason({ outcome: line.name }),
  }));
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
      ${chart("Answers", stacked(turns), describeSum(turns, "answer"))}
      ${toTimes("Time until the model starts", times.firstToken["all"], at, plots)}
      ${toTimes("Time until users see text", times.firstVisible["all"], at, plots)}
      ${toTimes("How far users are behind the model", times.lag["all"], at, plots)}
      ${chart("Tokens", stacked(used), describeSum(used, "token"))}
      ${spent.length > 0 ? chart("Cost", stacked(spent, describeCost), spent.map(({ name, values }) => `${describeCost(total(values))} ${name}`).join(", ")) : nothing}
      ${chart("Ratings", stacked(votes), votes.length === 0 ? "none" : [...votes, { name: "with a reason", values: reasons }].map(({ name, values }) => `${describeCount(total(values))} ${name}`).join(", "))}
      ${pictures.length > 0 ? chart("Images", stacked(pictures), describeSum(pictures, "image")) : nothing}
    </div>
    <section><h2>Tools</h2>${toTools(times.tool, counts.tools)}</section>
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
          ? empty("Nothing in this period.")
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

function toTools(
  times: Readonly<Record<string, Percentiles>>,
  counts: Readonly<Record<string, number[]>>,
): TemplateResult {
  const names = new Set([...Object.keys(counts), ...Object.keys(times).filter((name) => name !== "all")]);
  const rows = [...names]
    // If a process died during a call, the call has a count but no duration. The oldest calls have only a duration.
    .map((name) => ({ name, calls: Math.max(sum(counts[name] ?? []), times[name]?.count ?? 0), all: times[name]?.all }))
    .toSorted((one, other) => other.calls - one.calls);
  if (rows.length === 0) return empty("No tool was called.");
  const time = (ms: number | undefined) => (ms === undefined ? "–" : describeMs(ms));
  return table(
    "Tools",
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
