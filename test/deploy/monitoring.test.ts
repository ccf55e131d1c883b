import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { createMetrics } from "../../src/metrics/metrics.ts";

interface Alert {
  alert: string;
  expr: string;
  labels: { severity: string };
  annotations: { summary: string; runbook: string };
}

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (path: string) => readFileSync(root + path, "utf8");
const rules = parse(read("deploy/prometheus/alerts.yaml")) as { groups: Array<{ rules: Alert[] }> };
const alerts = rules.groups.flatMap((group) => group.rules);
const dashboard = JSON.parse(read("deploy/grafana/palaver.json")) as {
  panels: Array<{ title: string; targets: Array<{ expr: string }> }>;
};
const expressions = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
const folder = mkdtempSync(join(tmpdir(), "palaver-monitoring-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/**
 * A part of Debian's `prometheus`. Without it, these tests are skipped by name. If all tests must run, they fail
 * instead.
 */
const isPromtoolMissing = process.env["CI"] !== "true" && spawnSync("promtool", ["--version"]).error !== undefined;

function promtool(...args: string[]): string {
  const { status, stdout, stderr, error } = spawnSync("promtool", args, { encoding: "utf8", cwd: root });
  if (error !== undefined) throw error;
  return status === 0 ? "" : stdout + stderr;
}

/** The names of the series from a process, each with the names of its labels. */
async function readSeries(): Promise<Set<string>> {
  const metrics = createMetrics();
  const { body } = await metrics.render();
  return new Set(
    [...body.matchAll(/^# TYPE (\S+) (\S+)$/gm)].flatMap(([, name = "", type]) =>
      type === "histogram" ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    ),
  );
}

const namesIn = (expr: string) => expr.match(/palaver_\w+/g) ?? [];

describe("deploy/prometheus and deploy/grafana", () => {
  test("every metric in the alerts and on the dashboard exists", async () => {
    const series = await readSeries();
    const used = [...alerts.map(({ expr }) => expr), ...expressions].flatMap(namesIn);
    expect(used.length).toBeGreaterThan(30);
    expect(used.filter((name) => !series.has(name))).toEqual([]);
    expect(series.has("palaver_gone_total")).toBe(false);
  });

  test("every alert links to its section of docs/operations.md", () => {
    const headings = [...read("docs/operations.md").matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => heading);
    expect(alerts.map(({ alert }) => alert).filter((alert) => !headings.includes(alert))).toEqual([]);
    for (const { alert, annotations, labels } of alerts) {
      expect(annotations.runbook).toBe(`docs/operations.md#${alert.toLowerCase()}`);
      expect(["critical", "warning"]).toContain(labels.severity);
    }
  });

  test("each panel of the dashboard has its own title", () => {
    const titles = dashboard.panels.map(({ title }) => title);
    expect(titles.filter((title) => title === "")).toEqual([]);
    expect(new Set(titles).size).toBe(titles.length);
  });

  describe.skipIf(isPromtoolMissing)("promtool's checks", () => {
    test("promtool accepts the configuration and the alerts", () => {
      expect(promtool("check", "config", "--syntax-only", "deploy/prometheus/prometheus.yaml")).toBe("");
      expect(promtool("check", "rules", "deploy/prometheus/alerts.yaml")).toBe("");
    });

    test("every alert can fire, and none does while all is well", () => {
      expect(promtool("test", "rules", "test/deploy/alerts.yaml")).toBe("");
      const tried = read("test/deploy/alerts.yaml");
      expect(alerts.map(({ alert }) => alert).filter((alert) => !tried.includes(alert))).toEqual([]);
    });

    test("promtool accepts the dashboard's expressions", () => {
      const path = join(folder, "panels.yaml");
      const toRules = (all: readonly string[]) => {
        const records = all.map((expr, index) => ({
          record: `panel:${index}`,
          expr: expr.replaceAll("$__rate_interval", "5m"),
        }));
        writeFileSync(path, JSON.stringify({ groups: [{ name: "panels", rules: records }] }));
        return path;
      };
      expect(promtool("check", "rules", toRules(expressions))).toBe("");
      expect(promtool("check", "rules", toRules(["sum(palaver_queue_active"]))).toContain("could not parse expression");
    });
  });
});
