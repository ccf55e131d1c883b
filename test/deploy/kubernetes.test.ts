import { spawnSync } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { readConfig } from "../support/config.ts";
import type { Kinds } from "./kinds.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "palaver-kinds-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Kind = keyof Kinds;
interface Manifest {
  file: string;
  kind: Kind;
  body: { metadata: { name: string } } & Record<string, unknown>;
}

const manifests = globSync("deploy/kubernetes/*.yaml", { cwd: root }).flatMap((file) =>
  parseAllDocuments(readFileSync(root + file, "utf8")).map((document): Manifest => {
    const body = document.toJS() as Manifest["body"] & { apiVersion: string; kind: string };
    return { file, kind: `${body.apiVersion} ${body.kind}` as Kind, body };
  }),
);

/**
 * The compiler's errors for manifests that are written as literals of the published types. The types reject unknown
 * names.
 */
function findMistakes(bodies: ReadonlyArray<{ kind: string; body: object }>): string[] {
  const program = join(folder, "manifests.ts");
  const kinds = JSON.stringify(join(import.meta.dirname, "kinds.ts"));
  const literals = bodies.map(
    ({ kind, body }) => `export const _: Kinds[${JSON.stringify(kind)}] = ${JSON.stringify(body)};`,
  );
  const lines = literals.map((literal, index) => literal.replace("_", `manifest${index}`));
  writeFileSync(program, [`import type { Kinds } from ${kinds};`, ...lines].join("\n"));
  const options = ["--noEmit", "--strict", "--skipLibCheck", "--allowImportingTsExtensions"];
  const modules = ["--module", "esnext", "--moduleResolution", "bundler", "--types", ""];
  const tsc = join(root, "node_modules/.bin/tsc");
  const { stdout, error } = spawnSync(tsc, [...options, ...modules, program], { encoding: "utf8", cwd: folder });
  if (error !== undefined) throw error;
  return stdout.split("\n").filter((line) => /error TS/.test(line));
}

function deploymentOf(role: string) {
  const found = manifests.find(({ kind, body }) => kind === "apps/v1 Deployment" && body.metadata.name.endsWith(role));
  return structuredClone(found?.body) as unknown as Required<Kinds["apps/v1 Deployment"]>;
}

describe("deploy/kubernetes", () => {
  test("deploy/kubernetes fits the published schemas", () => {
    expect(manifests.length).toBeGreaterThan(8);
    expect(findMistakes(manifests)).toEqual([]);
  });

  test("the check of deploy/kubernetes finds a wrong name, a wrong type and an unknown kind", () => {
    const pod = (deployment: ReturnType<typeof deploymentOf>) => deployment.spec.template.spec;
    const [misnamed, mistyped] = [deploymentOf("worker"), deploymentOf("worker")];
    Object.assign(pod(misnamed)?.containers[0] ?? {}, { readynessProbe: {} });
    Object.assign(pod(mistyped) ?? {}, { terminationGracePeriodSeconds: "40" });
    const mistakes = findMistakes([
      { kind: "apps/v1 Deployment", body: misnamed },
      { kind: "apps/v1 Deployment", body: mistyped },
      { kind: "v1 Deployment", body: deploymentOf("worker") },
    ]);
    expect(mistakes).toEqual([
      expect.stringContaining("'\"readynessProbe\"' does not exist"),
      expect.stringContaining("Type 'string' is not assignable to type 'number'"),
      expect.stringContaining("Property 'v1 Deployment' does not exist"),
    ]);
  });

  test.each(["ingress", "worker"])("the variables of deploy/kubernetes for the role %s start the service", (role) => {
    const data = manifests.flatMap(({ body: { data, stringData } }) =>
      Object.entries({ ...(data as object), ...(stringData as object) }),
    );
    const container = deploymentOf(role).spec.template.spec?.containers[0];
    const own = container?.env?.map(({ name, value = "" }) => [name, value] as const) ?? [];
    const config = readConfig(Object.fromEntries([...(data as Array<[string, string]>), ...own]));
    expect(config.role).toBe(role);
  });

  test("each process in deploy/kubernetes has longer to shut down than it needs", () => {
    const { shutdownGraceMs } = readConfig({}).limits;
    for (const role of ["ingress", "worker"]) {
      const seconds = deploymentOf(role).spec.template.spec?.terminationGracePeriodSeconds ?? 0;
      expect(seconds * 1_000).toBeGreaterThan(shutdownGraceMs + 5_000);
    }
  });
});
