import uPlot from "uplot";

const HEIGHT_PX = 130;
const BAR_SHARE = 0.8;

export interface Line {
  name: string;
  values: ReadonlyArray<number | null>;
  /** Index into the page's chart colours. */
  color: number;
}

export interface PlotOptions {
  /** The points' times in Unix milliseconds. */
  at: readonly number[];
  lines: readonly Line[];
  /** If true, draws stacked bars instead of lines. */
  isStacked: boolean;
  describe(value: number): string;
}

/** Draws into an element. Returns a function that removes the plot. */
export function drawPlot(root: HTMLElement, { at, lines, isStacked, describe }: PlotOptions): () => void {
  const colors = readColors(root);
  const stacked = isStacked ? stack(lines) : lines.map(({ values }) => [...values]);
  // Draw the rear area first, so that it does not cover the areas in front.
  const order = isStacked ? lines.map((_, index) => lines.length - 1 - index) : lines.map((_, index) => index);
  const seconds = at.map((ms) => ms / 1_000);
  const step = (seconds[1] ?? 0) - (seconds[0] ?? 0);
  const bars = uPlot.paths.bars?.({ size: [BAR_SHARE, 40] });
  const axis = {
    stroke: colors.muted,
    grid: { stroke: colors.line, width: 1 },
    ticks: { show: false },
    font: `11px ${colors.font}`,
  };
  const plot = new uPlot(
    {
      width: root.clientWidth,
      height: HEIGHT_PX,
      legend: { show: false },
      cursor: { y: false, points: { size: 6 } },
      scales: {
        x: { range: (_, min, max) => [min - step / 2, max + step / 2] },
        y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] },
      },
      axes: [
        { ...axis, size: 30, values: (_, moments) => moments.map((moment) => describeTick(moment * 1_000, step)) },
        { ...axis, size: toAxisWidth, values: (_, values) => values.map((value) => describe(value)) },
      ],
      series: [
        {},
        ...order.map((index): uPlot.Series => {
          const color = colors.of(lines[index]?.color ?? 0);
          const style: uPlot.Series = {
            label: lines[index]?.name ?? "",
            stroke: color,
            width: 1.5,
            spanGaps: true,
            points: { size: 5 },
          };
          return isStacked && bars ? { ...style, width: 0, fill: color, paths: bars, points: { show: false } } : style;
        }),
      ],
    },
    [seconds, ...order.map((index) => stacked[index] ?? [])],
    root,
  );
  const resizing = new ResizeObserver(() => plot.setSize({ width: root.clientWidth, height: HEIGHT_PX }));
  resizing.observe(root);
  return () => {
    resizing.disconnect();
    plot.destroy();
  };
}

function toAxisWidth(_: uPlot, labels: string[] | null): number {
  return Math.max(54, ...(labels ?? []).map(({ length }) => 12 + length * 6.5));
}

/** Formats a tick as a time of day, or as a date if each point is a day. */
function describeTick(at: number, stepSeconds: number): string {
  const date = new Date(at);
  const day = date.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  const isMidnight = date.getHours() === 0 && date.getMinutes() === 0;
  return stepSeconds >= 86_400 || isMidnight ? day : date.toLocaleTimeString("en-GB").slice(0, 5);
}

function stack(lines: readonly Line[]): number[][] {
  const sums: number[] = [];
  return lines.map(({ values }) =>
    values.map((value, index) => {
      sums[index] = (sums[index] ?? 0) + (value ?? 0);
      return sums[index];
    }),
  );
}

/** Reads the colours from the style sheet, because a canvas cannot use CSS variables. */
function readColors(root: HTMLElement) {
  const probe = root.appendChild(document.createElement("span"));
  const read = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const colors = Array.from({ length: 6 }, (_, index) => read(`plot-${index + 1}`));
  const found = { muted: read("muted"), line: read("line"), font: getComputedStyle(probe).fontFamily };
  probe.remove();
  return { ...found, of: (index: number) => colors[index % colors.length] ?? found.muted };
}
