import { spawnSync } from "node:child_process";
import { globSync, readFileSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseEnv } from "node:util";
import { describe, expect, test } from "vitest";
import { CONFIG_VARIABLES, readConfig } from "../src/config/config.ts";
import { printConfigurationTables, printEnvExample } from "../src/config/reference.ts";
import {
  countLines,
  findCycles,
  findEffects,
  findForeignImports,
  findLocalTraces,
  findLooseVersions,
  findMisplacedImports,
  findPlatformNames,
  findUnlocked,
  hasDefaultExport,
  type LockEntry,
  loadedWith,
  MAX_LINES,
  moduleOf,
  readsEnvironment,
  type Source,
  variablesOf,
} from "./support/source-rules.ts";

const root = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");
const read = (path: string) => readFileSync(`${root}/${path}`, "utf8");

const UNTRACKED = [".git", ".git/**", "node_modules/**", "data/**", "coverage/**", ".env", "*.log"];
const paths = listFiles();
const scripts = new Map<string, Source>(
  paths.filter((path) => path.endsWith(".ts")).map((path) => [path, { path, code: read(path) }]),
);
const sources = [...scripts.values()].filter(({ path }) => /^(src|adapters)\//.test(path));

/** The sources that break a rule, with what was found there. */
function offenders(among: Iterable<Source>, find: (source: Source) => readonly string[]): string[] {
  return [...among].flatMap((source) => find(source).map((finding) => `${source.path}: ${finding}`));
}

describe("the sources", () => {
  test("are found", () => expect(sources.length).toBeGreaterThan(20));

  test("keep to their side of the port", () => expect(offenders(sources, findForeignImports)).toEqual([]));

  // A decoder takes hundreds of megabytes: two of them at once are too many.
  test("decode pictures and read documents in one place and one process each", () =>
    expect(offenders(sources, findMisplacedImports)).toEqual([]));

  test("have floors: no folder imports one that imports it, types included", () =>
    expect(findCycles(sources, moduleOf)).toEqual([]));

  test("have no circles of files, types included", () => expect(findCycles(sources, (path) => path)).toEqual([]));

  test("name no platform in the core", () => expect(offenders(sources, findPlatformNames)).toEqual([]));

  test("have no effects where they must be pure", () =>
    expect(offenders(sources, (source) => findEffects(source, scripts))).toEqual([]));

  test("read the environment where a process begins", () =>
    expect(sources.filter(readsEnvironment).map(({ path }) => path)).toEqual([]));

  // They are most of what a start would cost, in time and memory.
  test.each([
    ["src/main.ts", "src/app/service.ts"],
    ["src/doctor.ts", "src/doctor/platforms.ts"],
  ])("load with %s nothing that can be switched off", (entry, needed) => {
    const loaded = loadedWith(entry, scripts);
    expect(loaded).toContain(needed);
    const optional = /^(@keyv\/redis|bullmq|@slack\/.+|discord\.js|@discordjs\/.+|pino-pretty|sharp)$/;
    const parts = /^(src\/sandbox\/server|adapters\/(slack|discord|local)\/(index|check))\.ts$/;
    expect([...loaded].filter((name) => optional.test(name) || parts.test(name))).toEqual([]);
  });

  test("fit on a few screens", () =>
    expect(sources.filter((source) => countLines(source) > MAX_LINES).map(({ path }) => path)).toEqual([]));

  test("export by name", () =>
    expect([...scripts.values()].filter(hasDefaultExport).map(({ path }) => path)).toEqual([]));
});

describe("the repository", () => {
  const manifest = JSON.parse(read("package.json")) as Record<string, Record<string, unknown>>;
  const textFiles = paths.filter((path) => !/\.(png|jpe?g|gif|webp|avif|heic|ico|woff2?|pdf|bin)$/.test(path));

  test("names no registry and no folder of anybody's machine", () => {
    const own = process.env["npm_config_registry"];
    const hosts = [["registry", "npmjs", "org"].join("."), ["registry", "yarnpkg", "com"].join(".")];
    if (own !== undefined && URL.canParse(own)) hosts.push(new URL(own).host);
    const files = textFiles.map((path) => ({ path, code: read(path) }));
    expect(offenders(files, ({ code }) => findLocalTraces(code, hosts, root))).toEqual([]);
  });

  test("has at its top what a repository needs, and nothing else", () => {
    const folders = [".ci", ".github", "adapters", "bench", "chaos", "deploy", "docs", "lab", "src", "test"];
    const documents = ["CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md"];
    const container = [".dockerignore", "Dockerfile", "compose.yaml"];
    const settings = [".env.example", ".gitignore", ".npmrc", ".nvmrc", ".oxlintrc.json", "biome.json", "knip.json"];
    const code = ["manifest.json", "package-lock.json", "package.json", "tsconfig.json", "vitest.config.ts"];
    const known = new Set([...folders, ...documents, ...container, ...settings, ...code]);
    expect([...new Set(paths.map((path) => path.split("/")[0] ?? ""))].filter((name) => !known.has(name))).toEqual([]);
  });

  test.each(["dependencies", "devDependencies", "optionalDependencies", "overrides"])(
    "asks for exact versions in %s",
    (kind) => {
      expect(findLooseVersions(manifest[kind] ?? {})).toEqual([]);
    },
  );

  test("has a lockfile without download addresses, with a checksum for everything", () => {
    const { packages } = JSON.parse(read("package-lock.json")) as { packages: Record<string, Record<string, unknown>> };
    const entries = Object.entries(packages).filter(([path]) => path !== "");
    expect(entries.length).toBeGreaterThan(50);
    expect(entries.filter(([, entry]) => "resolved" in entry).map(([path]) => path)).toEqual([]);
    expect(entries.filter(([, entry]) => !("integrity" in entry)).map(([path]) => path)).toEqual([]);
  });

  test("has a lockfile that every kind of machine can install from", () => {
    const { packages } = JSON.parse(read("package-lock.json")) as { packages: Record<string, LockEntry> };
    expect(findUnlocked(packages)).toEqual([]);
  });

  // With ignore-scripts npm also leaves out prestart and pretest, which install what is missing.
  test("lets npm run what comes before a command", () =>
    expect(read(".npmrc")).not.toMatch(/^ignore-scripts\s*=\s*true/m));

  test("runs on the same Node everywhere", () => {
    const versions = new Set(
      Object.entries(manifest["optionalDependencies"] ?? {}).flatMap(([name, version]) =>
        name.startsWith("node-") ? [version] : [],
      ),
    );
    expect(versions.size).toBe(1);
    const [version] = [...versions].map(String);
    expect([...read("Dockerfile").matchAll(/^FROM node:([\d.]+)/gm)].map(([, used]) => used)).toEqual([version]);
    expect(version?.split(".")[0]).toBe(read(".nvmrc").trim());
  });
});

describe("the configuration", () => {
  test("has the same variables in .env.example", () => {
    expect(variablesOf(read(".env.example")).toSorted(byName)).toEqual(CONFIG_VARIABLES.toSorted(byName));
  });

  test("is the default one when .env.example is copied as it is, and when its commented lines are taken over", () => {
    const example = read(".env.example");
    const uncommented = example.replace(/^# ([A-Z][A-Z0-9_]*=)/gm, "$1");
    expect(readConfig(parseEnv(example))).toEqual(readConfig({}));
    expect(readConfig(parseEnv(uncommented))).toEqual(readConfig({}));
  });

  test("is told in .env.example and in docs/configuration.md as `npm run docs` prints it", () => {
    expect(read(".env.example")).toBe(printEnvExample());
    expect(read("docs/configuration.md").split("by npm run docs -->\n\n")[1]).toBe(printConfigurationTables());
  });
});

/** What git has and would take, so that a violation shows before it is committed; everything there is without git. */
function listFiles(): string[] {
  const git = spawnSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
  });
  const found =
    git.status === 0
      ? git.stdout.split("\0")
      : globSync("**", { cwd: root, exclude: UNTRACKED.map((name) => `**/${name}`) });
  return found.filter((path) => statSync(`${root}/${path}`, { throwIfNoEntry: false })?.isFile());
}

function byName(a: string, b: string): number {
  return a < b ? -1 : 1;
}
