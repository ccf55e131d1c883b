import { posix } from "node:path";

/** A file in the repository: its path from the root, with slashes, and its text. */
export interface Source {
  path: string;
  code: string;
}

/** The largest number of lines in a deep module. Most files have 80 to 250. */
export const MAX_LINES = 600;

const PLATFORM_SDKS: Readonly<Record<string, RegExp>> = {
  slack: /^@slack\//,
  discord: /^(discord\.js|discord-api-types|@discordjs)(\/|$)/,
};

/** Files whose functions depend only on their arguments. */
const PURE =
  /^(src\/(text\/.+|pacing\/(?!scheduler\.ts$).+|conversation\/.+|gateway\/chunks\.ts)|adapters\/([^/]+\/write\/pace|slack\/hear\/content)\.ts)$/;
/** Packages that only calculate. */
const PURE_PACKAGES = new Set(["remend", "marked", "tokenx"]);
const EFFECTS =
  /\b(process|console|fetch|setTimeout|setInterval|setImmediate|queueMicrotask|localStorage|performance|Date\.now|Math\.random|crypto)\b(?=[.(])|\bnew Date\(\)|\bDate\.now\b|\bMath\.random\b/;

const MAY_READ_ENVIRONMENT = new Set([
  "src/main.ts",
  "src/doctor.ts",
  "src/setup.ts",
  "src/person.ts",
  "src/backup.ts",
  "src/sandbox/main.ts",
]);
/** Packages that only one place can use, because that place limits their input. */
const ONE_PLACE: Readonly<Record<string, string>> = {
  sharp: "src/media/decoding.ts",
  unpdf: "src/documents/pdf.ts",
  mammoth: "src/documents/word.ts",
  "read-excel-file/node": "src/documents/workbook.ts",
  htmlparser2: "src/documents/markup.ts",
  "postal-mime": "src/documents/mail.ts",
};
/** Files that only another process can load, and the file that starts that process. */
const ONE_PROCESS: Readonly<Record<string, string>> = {
  "src/media/decoding.ts": "src/media/decoder-process.ts",
  "src/documents/read.ts": "src/documents/document-process.ts",
};
/** The only file in the core that imports an adapter. */
const ADAPTER_LIST = "src/platforms.ts";
/** Files whose comments say which platform a limit comes from. */
const LIMITS_OF_PLATFORMS = new Set([
  "src/bot/accept.ts",
  "src/history/keys.ts",
  "src/imagine/wording.ts",
  "src/queue/partition.ts",
  "src/queue/redis-journal.ts",
  "src/text/inline.ts",
  "src/text/persona-fields.ts",
]);
const PLATFORM_NAME = /slack|discord/i;
/** The parts of the core that an adapter can use. */
const PORT = /^src\/(port|text|media|http|concurrency|pacing)\/.+/;

interface Import {
  /** A package, a `node:` module, or a file with its path from the repository's root. */
  name: string;
  isTypeOnly: boolean;
}

/** Finds the modules that a source imports or re-exports, including dynamic imports. */
export function importsOf({ path, code }: Source): Import[] {
  const dynamic = withoutComments(code).matchAll(/\bimport\(\s*["'`]([^"'`\n]+)["'`]/g);
  return [
    ...statementsOf({ path, code }),
    ...[...dynamic].map(([, name = ""]) => ({ name: resolve(path, name), isTypeOnly: false })),
  ];
}

/** The imports that run at the start. Leaves out those that the program makes later. */
function statementsOf({ path, code }: Source): Import[] {
  const statements = withoutComments(code).matchAll(
    /^\s*(?:import|export)\s+(type\s)?(?:[^;"'`]*?\bfrom\s*)?["']([^"'\n]+)["']/gm,
  );
  return [...statements].map(([, type, name = ""]) => ({
    name: resolve(path, name),
    isTypeOnly: type !== undefined,
  }));
}

/** The files and packages that are loaded before a file's first line runs, each once. */
export function loadedWith(path: string, sources: ReadonlyMap<string, Source>): Set<string> {
  const loaded = new Set<string>();
  const visit = (name: string) => {
    if (loaded.has(name)) return;
    loaded.add(name);
    const source = sources.get(name);
    if (source === undefined) return;
    for (const { name: next, isTypeOnly } of statementsOf(source)) if (!isTypeOnly) visit(next);
  };
  visit(path);
  return loaded;
}

/** Finds imports of a source from the wrong side of the port. */
export function findForeignImports(source: Source): string[] {
  const names = importsOf(source).map(({ name }) => name);
  const [, platform] = /^adapters\/([^/]+)\//.exec(source.path) ?? [];
  const foreignSdks = Object.entries(PLATFORM_SDKS).filter(([owner]) => owner !== platform);
  return names.filter((name) => {
    if (foreignSdks.some(([, sdk]) => sdk.test(name))) return true;
    if (name.startsWith("adapters/"))
      return platform === undefined ? source.path !== ADAPTER_LIST : !name.startsWith(`adapters/${platform}/`);
    return platform !== undefined && name.startsWith("src/") && !PORT.test(name);
  });
}

/** Finds what the lab imports from the tests, and what the product imports from the lab or the tests. */
export function findLabImports(source: Source): string[] {
  const foreign = source.path.startsWith("lab/") ? /^(test\/|vitest$)/ : /^(lab|test)\//;
  return importsOf(source).flatMap(({ name }) => (foreign.test(name) ? [name] : []));
}

/** Finds imports that are allowed in only one other place. */
export function findMisplacedImports(source: Source): string[] {
  const places = new Map([...Object.entries(ONE_PLACE), ...Object.entries(ONE_PROCESS)]);
  return importsOf(source).flatMap(({ name, isTypeOnly }) => {
    const place = places.get(name);
    return isTypeOnly || place === undefined || place === source.path ? [] : [name];
  });
}

/**
 * Lines in the core that name a platform. Only the list of adapters can do so, and a few comments that say where a
 * limit comes from.
 */
export function findPlatformNames({ path, code }: Source): string[] {
  if (!path.startsWith("src/") || path === ADAPTER_LIST) return [];
  const read = LIMITS_OF_PLATFORMS.has(path) ? withoutComments(code) : code;
  return read.split("\n").filter((line) => PLATFORM_NAME.test(line));
}

/** A file's module: its folder, or the file itself if it is next to the folders of `src/` or of an adapter. */
export function moduleOf(path: string): string {
  const [first, second, third, ...rest] = path.split("/");
  if (first === "src") return third === undefined ? path : `src/${second}`;
  return rest.length === 0 ? path : `${first}/${second}/${third}`;
}

/**
 * Groups of nodes that reach each other through imports, including type imports. Each group is sorted. `toNode` returns
 * a file's node. Empty if the nodes form layers.
 */
export function findCycles(sources: Iterable<Source>, toNode: (path: string) => string): string[][] {
  const known = new Map([...sources].map((source) => [source.path, source]));
  const edges = new Map<string, Set<string>>();
  for (const source of known.values()) {
    const from = toNode(source.path);
    const to = importsOf(source).flatMap(({ name }) => (known.has(name) ? [toNode(name)] : []));
    edges.set(from, new Set([...(edges.get(from) ?? []), ...to.filter((node) => node !== from)]));
  }
  const reachable = new Map([...edges.keys()].map((node) => [node, reach(node, edges)]));
  const cycles = [...edges.keys()].map((node) =>
    [...edges.keys()].filter((other) => reachable.get(node)?.has(other) && reachable.get(other)?.has(node)).toSorted(),
  );
  return [...new Map(cycles.filter((cycle) => cycle.length > 0).map((cycle) => [cycle.join(), cycle])).values()];
}

function reach(start: string, edges: ReadonlyMap<string, ReadonlySet<string>>): Set<string> {
  const found = new Set<string>();
  const waiting = [...(edges.get(start) ?? [])];
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    if (found.has(node)) continue;
    found.add(node);
    waiting.push(...(edges.get(node) ?? []));
  }
  return found;
}

/**
 * The effects in a source that must have none, including effects of the files that it runs. Empty for all other
 * sources.
 */
export function findEffects(source: Source, sources: ReadonlyMap<string, Source>): string[] {
  if (!PURE.test(source.path)) return [];
  const found: string[] = [];
  const seen = new Set<string>();
  const visit = (current: Source) => {
    if (seen.has(current.path)) return;
    seen.add(current.path);
    const effect = EFFECTS.exec(withoutComments(current.code));
    if (effect !== null) found.push(`${current.path} uses ${effect[0]}`);
    for (const { name, isTypeOnly } of importsOf(current)) {
      const file = sources.get(name);
      if (isTypeOnly || PURE_PACKAGES.has(name)) continue;
      if (file === undefined) found.push(`${current.path} imports ${name}`);
      else visit(file);
    }
  };
  visit(source);
  return found;
}

export function readsEnvironment({ path, code }: Source): boolean {
  return (
    !MAY_READ_ENVIRONMENT.has(path) &&
    /\bprocess\s*\??\.\s*env\b|\bprocess\[|["'](node:)?process["']/.test(withoutComments(code))
  );
}

/** Tools require a default export in their configuration, and declarations describe other packages' modules. */
export function hasDefaultExport({ path, code }: Source): boolean {
  if (path.endsWith(".config.ts") || path.endsWith(".d.ts")) return false;
  return /^\s*export\s+default\b|^\s*export\s*\{[^}]*\bas\s+default\b/m.test(code);
}

/** Names of registries and of local folders in a text. */
export function findLocalTraces(text: string, registryHosts: readonly string[], root: string): string[] {
  const folders = /(?<![\w.:/-])\/(?:home|root|Users|work|workspace|builds)\/[\w.-]+/g;
  const traces = [...text.matchAll(folders)].map(([folder]) => folder);
  // The name of a checkout directly under "/" proves nothing.
  if (root.split("/").length > 2 && text.includes(root)) traces.push(root);
  return [...traces, ...registryHosts.filter((host) => text.includes(host))];
}

/** Dependencies in a package.json whose version can change, by name. */
export function findLooseVersions(dependencies: Readonly<Record<string, unknown>>): string[] {
  const exact = /^(npm:(@[\w.-]+\/)?[\w.-]+@)?\d+\.\d+\.\d+(-[\w.-]+)?$|^\$[\w@/.-]+$/;
  return Object.entries(dependencies).flatMap(([name, version]) => {
    if (typeof version === "object" && version !== null) return findLooseVersions(version as Record<string, unknown>);
    return typeof version === "string" && exact.test(version) ? [] : [name];
  });
}

export interface LockEntry {
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  [key: string]: unknown;
}

/**
 * Packages that a lockfile's entry names but the lockfile lacks, including those for other machines. `npm ci` refuses
 * such a lockfile. `npm install` writes one if a registry lacks a platform's package.
 */
export function findUnlocked(packages: Readonly<Record<string, LockEntry>>): string[] {
  return Object.entries(packages).flatMap(([path, { dependencies, optionalDependencies }]) =>
    Object.keys({ ...dependencies, ...optionalDependencies }).filter((name) => !isLocked(packages, path, name)),
  );
}

/** Searches like Node: first in the package's own node_modules, then in those of the parent folders. */
function isLocked(packages: Readonly<Record<string, LockEntry>>, from: string, name: string): boolean {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf("node_modules/") - 1))) {
    if (`${folder === "" ? "" : `${folder}/`}node_modules/${name}` in packages) return true;
    if (folder === "") return false;
  }
}

/** Variables in the text of an .env file, in order. Includes those that are commented out. */
export function variablesOf(envFile: string): string[] {
  return [...envFile.matchAll(/^(?:# ?)?([A-Z][A-Z0-9_]*)=/gm)].map(([, name = ""]) => name);
}

function resolve(from: string, name: string): string {
  return name.startsWith(".") ? posix.join(posix.dirname(from), name) : name;
}

/** Works for formatted sources, because their comments start a line or follow a space. */
function withoutComments(code: string): string {
  return code.replace(/(^|\s)\/\*[\s\S]*?\*\//g, "$1").replace(/(^|\s)\/\/.*$/gm, "$1");
}
