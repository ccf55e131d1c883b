import { spawnSync } from "node:child_process";
import { globSync, readdirSync, readFileSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseEnv } from "node:util";
import { describe, expect, test } from "vitest";
import { printConfigurationTables, printEnvExample } from "../src/config/reference.ts";
import { CONFIG_VARIABLES, modules, readConfig } from "./support/config.ts";
import {
  findCycles,
  findEffects,
  findForeignImports,
  findLabImports,
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
const platforms = readdirSync(`${root}/adapters`);
const sources = [...scripts.values()].filter(({ path }) => /^(src|adapters)\//.test(path));

/** The sources that break a rule, with the findings. */
function offenders(among: Iterable<Source>, find: (source: Source) => readonly string[]): string[] {
  return [...among].flatMap((source) => find(source).map((finding) => `${source.path}: ${finding}`));
}

describe("the sources", () => {
  test("the checks find the repository's sources", () => expect(sources.length).toBeGreaterThan(20));

  test("every source stays on its side of the port", () => expect(offenders(sources, findForeignImports)).toEqual([]));

  test("the sources import nothing from the lab, and the lab imports nothing from the tests", () => {
    const lab = [...scripts.values()].filter(({ path }) => path.startsWith("lab/"));
    expect(lab.length).toBeGreaterThan(20);
    expect(offenders([...sources, ...lab], findLabImports)).toEqual([]);
  });

  // A decoder needs hundreds of megabytes, so two at once are too many.
  test("only one module and one process decodes images, and only one reads documents", () =>
    expect(offenders(sources, findMisplacedImports)).toEqual([]));

  test("no two folders import each other, not even indirectly or for types alone", () =>
    expect(findCycles(sources, moduleOf)).toEqual([]));

  test("no files import each other in a circle, not even for types alone", () =>
    expect(findCycles(sources, (path) => path)).toEqual([]));

  test("the core names no platform, except in the list of adapters and for limits in listed comments", () =>
    expect(offenders(sources, findPlatformNames)).toEqual([]));

  test("pure sources import nothing that has effects", () =>
    expect(offenders(sources, (source) => findEffects(source, scripts))).toEqual([]));

  test("sources read the environment only in programs' entry files", () =>
    expect(sources.filter(readsEnvironment).map(({ path }) => path)).toEqual([]));

  // Loading these takes most of the time and the memory of a start.
  test.each([
    ["src/main.ts", "src/app/service.ts"],
    ["src/doctor.ts", "src/doctor/platforms.ts"],
    ...platforms.map((platform) => [`adapters/${platform}/index.ts`, "src/port/variables.ts"]),
  ])("loading %s loads nothing that can be switched off", (entry, needed) => {
    const loaded = loadedWith(entry, scripts);
    expect(loaded).toContain(needed);
    const optional = /^(@keyv\/redis|@slack\/.+|discord\.js|@discordjs\/.+|pino-pretty|sharp)$/;
    const parts = /^(src\/sandbox\/server|adapters\/[^/]+\/(adapter|check|preview))\.ts$/;
    expect([...loaded].filter((name) => optional.test(name) || parts.test(name))).toEqual([]);
  });

  // If other code calls a callback, a right in the callback's context is lost silently.
  test("the sources pass the right to write as an argument, and store nothing in a call's context", () =>
    expect(sources.filter(({ code }) => /AsyncLocalStorage|async_hooks/.test(code)).map(({ path }) => path)).toEqual(
      [],
    ));

  test("only listed files write without the right to write, and each says why", () =>
    expect(sources.filter(({ code }) => /\bNO_RIGHT\b/.test(code)).map(({ path }) => path)).toEqual([
      "src/app/queue.ts",
      "src/app/service.ts",
      "src/app/services.ts",
      "src/bot/outage-notice.ts",
      "src/port/right.ts",
      "src/queue/sqlite-journal.ts",
      "src/turn/posted-answer.ts",
      "src/turn/waiting-marks.ts",
    ]));

  test("every source file stays within the limit of lines", () =>
    expect(sources.filter(({ code }) => code.trimEnd().split("\n").length > MAX_LINES).map(({ path }) => path)).toEqual(
      [],
    ));

  // Any version of an SDK can rename its private members, and a test double proves nothing about them.
  test("sources use no private member of a platform's SDK", () =>
    expect(offenders(sources, ({ code }) => code.match(/\._\w+|\bhandlePacket\b|\bmakeRequest\b/g) ?? [])).toEqual([]));

  test("sources export by name", () =>
    expect([...scripts.values()].filter(hasDefaultExport).map(({ path }) => path)).toEqual([]));
});

describe("the repository", () => {
  const manifest = JSON.parse(read("package.json")) as Record<string, Record<string, unknown>>;
  const textFiles = paths.filter((path) => !/\.(png|jpe?g|gif|webp|avif|heic|ico|woff2?|pdf|bin)$/.test(path));

  test("the repository names no registry and no folder of a local machine", () => {
    const own = process.env["npm_config_registry"];
    const hosts = [["registry", "npmjs", "org"].join("."), ["registry", "yarnpkg", "com"].join(".")];
    if (own !== undefined && URL.canParse(own)) hosts.push(new URL(own).host);
    const files = textFiles.map((path) => ({ path, code: read(path) }));
    expect(offenders(files, ({ code }) => findLocalTraces(code, hosts, root))).toEqual([]);
  });

  test("the top of the repository contains what it needs, and nothing else", () => {
    const folders = [".ci", ".github", "adapters", "deploy", "docs", "lab", "src", "test"];
    const documents = ["CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md"];
    const container = [".dockerignore", "Dockerfile", "compose.yaml"];
    const settings = [".env.example", ".gitignore", ".npmrc", ".nvmrc", ".oxlintrc.json", "biome.json", "knip.json"];
    const code = ["manifest.json", "package-lock.json", "package.json", "tsconfig.json", "vitest.config.ts"];
    const known = new Set([...folders, ...documents, ...container, ...settings, ...code]);
    expect([...new Set(paths.map((path) => path.split("/")[0] ?? ""))].filter((name) => !known.has(name))).toEqual([]);
  });

  test.each(["dependencies", "devDependencies", "optionalDependencies", "overrides"])(
    "the repository requires exact versions in %s",
    (kind) => {
      expect(findLooseVersions(manifest[kind] ?? {})).toEqual([]);
    },
  );

  test("the lockfile has no download addresses, and a checksum for everything", () => {
    const { packages } = JSON.parse(read("package-lock.json")) as { packages: Record<string, Record<string, unknown>> };
    const entries = Object.entries(packages).filter(([path]) => path !== "");
    expect(entries.length).toBeGreaterThan(50);
    expect(entries.filter(([, entry]) => "resolved" in entry).map(([path]) => path)).toEqual([]);
    expect(entries.filter(([, entry]) => !("integrity" in entry)).map(([path]) => path)).toEqual([]);
  });

  test("npm can install the lockfile on every kind of machine", () => {
    const { packages } = JSON.parse(read("package-lock.json")) as { packages: Record<string, LockEntry> };
    expect(findUnlocked(packages)).toEqual([]);
  });

  test("the repository uses the same Node everywhere", () => {
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
  test(".env.example has the configuration's variables", () => {
    expect(variablesOf(read(".env.example")).toSorted(byName)).toEqual(CONFIG_VARIABLES.toSorted(byName));
  });

  test(".env.example gives the default configuration, unchanged and with its commented lines", () => {
    const example = read(".env.example");
    const uncommented = example.replace(/^# ([A-Z][A-Z0-9_]*=)/gm, "$1");
    expect(readConfig(parseEnv(example))).toEqual(readConfig({}));
    expect(readConfig(parseEnv(uncommented))).toEqual(readConfig({}));
  });

  test(".env.example and docs/configuration.md are as `npm run docs` prints them", () => {
    expect(read(".env.example")).toBe(printEnvExample(modules));
    expect(read("docs/configuration.md").split("by npm run docs -->\n\n")[1]).toBe(printConfigurationTables(modules));
  });
});

/** Files that git tracks or would add, so that a violation shows before the commit. Without git, all files. */
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
