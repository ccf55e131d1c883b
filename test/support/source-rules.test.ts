import { describe, expect, test } from "vitest";
import {
  findCycles,
  findEffects,
  findForeignImports,
  findLocalTraces,
  findLooseVersions,
  findMisplacedImports,
  findPlatformNames,
  findUnlocked,
  hasDefaultExport,
  importsOf,
  loadedWith,
  moduleOf,
  readsEnvironment,
  type Source,
  variablesOf,
} from "./source-rules.ts";

function toSource(path: string, ...lines: string[]): Source {
  return { path, code: `${lines.join("\n")}\n` };
}

describe("importsOf", () => {
  test("importsOf finds every form of import, resolved from the root", () => {
    const source = toSource(
      "src/a/b.ts",
      'import "./effects.ts";',
      'import type { A } from "../a.ts";',
      "import {",
      "  b,",
      "  type C,",
      '} from "node:fs";',
      'export { d } from "./d.ts";',
      'export type { E } from "pkg/e";',
      'export * from "./f.ts";',
      'const later = () => import("../../adapters/x/g.ts");',
    );
    expect(importsOf(source)).toEqual([
      { name: "src/a/effects.ts", isTypeOnly: false },
      { name: "src/a.ts", isTypeOnly: true },
      { name: "node:fs", isTypeOnly: false },
      { name: "src/a/d.ts", isTypeOnly: false },
      { name: "pkg/e", isTypeOnly: true },
      { name: "src/a/f.ts", isTypeOnly: false },
      { name: "adapters/x/g.ts", isTypeOnly: false },
    ]);
  });

  test("importsOf ignores comments and exported declarations", () => {
    const source = toSource(
      "src/a.ts",
      '// import x from "y";',
      "/**",
      ' import x from "y";',
      " */",
      'export const from = "z";',
      "export function f() {",
      '  return "from";',
      "}",
    );
    expect(importsOf(source)).toEqual([]);
  });
});

describe("loadedWith", () => {
  test("loadedWith follows static imports, but neither types nor later imports", () => {
    const sources = [
      toSource("src/main.ts", 'import { a } from "./a.ts";', 'import type { T } from "./types.ts";'),
      toSource("src/a.ts", 'import "node:fs";', 'import "./main.ts";', 'const later = () => import("./later.ts");'),
      toSource("src/types.ts", 'import "pkg";'),
      toSource("src/later.ts", 'import "pkg";'),
    ];
    const loaded = loadedWith("src/main.ts", new Map(sources.map((source) => [source.path, source])));
    expect([...loaded]).toEqual(["src/main.ts", "src/a.ts", "node:fs"]);
  });
});

describe("findForeignImports", () => {
  test.each<[string, string]>([
    ["src/bot/bot.ts", "@slack/bolt"],
    ["src/text/split.ts", "@discordjs/rest"],
    ["src/bot/bot.ts", "../../adapters/local/adapter.ts"],
    ["adapters/local/index.ts", "../slack/index.ts"],
    ["adapters/slack/index.ts", "discord.js"],
    ["adapters/slack/index.ts", "../../src/bot/bot.ts"],
  ])("findForeignImports does not let %s import %s", (path, name) => {
    expect(findForeignImports(toSource(path, `import { x } from "${name}";`))).toHaveLength(1);
    expect(findForeignImports(toSource(path, `import type { X } from "${name}";`))).toHaveLength(1);
  });

  test.each<[string, string]>([
    ["src/platforms.ts", "../adapters/slack/index.ts"],
    ["src/bot/bot.ts", "../port/adapter.ts"],
    ["src/bot/bot.ts", "keyv"],
    ["adapters/slack/index.ts", "@slack/bolt"],
    ["adapters/slack/index.ts", "../../src/port/adapter.ts"],
    ["adapters/slack/index.ts", "../../src/text/split.ts"],
    ["test/bot/bot.test.ts", "../src/bot.ts"],
  ])("findForeignImports lets %s import %s", (path, name) => {
    expect(findForeignImports(toSource(path, `import { x } from "${name}";`))).toEqual([]);
  });
});

describe("findMisplacedImports", () => {
  test.each<[string, string, string[]]>([
    ["src/media/picture.ts", 'import sharp from "sharp";', ["sharp"]],
    ["adapters/local/store/files.ts", 'const sharp = await import("sharp");', ["sharp"]],
    ["src/media/decoder.ts", 'import { runJob } from "./decoding.ts";', ["src/media/decoding.ts"]],
    ["src/media/decoding.ts", 'import sharp from "sharp";', []],
    ["src/media/decoder-process.ts", 'import { runJob } from "./decoding.ts";', []],
    ["src/media/picture.ts", 'import type { Metadata } from "sharp";', []],
  ])("findMisplacedImports finds in %s, which says %s: %j", (path, line, found) => {
    expect(findMisplacedImports(toSource(path, line))).toEqual(found);
  });
});

describe("findEffects", () => {
  const helper = toSource("src/clock.ts", "export const now = () => Date.now();");
  const files = toSource("src/files.ts", 'import { readFile } from "node:fs/promises";');
  const known = new Map([helper, files].map((source) => [source.path, source]));

  test.each<[string, string]>([
    ['import { readFileSync } from "node:fs";', "imports node:fs"],
    ["setTimeout(f, 1);", "uses setTimeout"],
    ["const at = Date.now();", "uses Date.now"],
    ["const at = new Date();", "uses new Date()"],
    ["const r = Math.random();", "uses Math.random"],
    ['import { now } from "../clock.ts";', "src/clock.ts uses Date.now"],
    ['import { read } from "../files.ts";', "src/files.ts imports node:fs/promises"],
  ])("findEffects finds %s in a pure file", (line, finding) => {
    expect(findEffects(toSource("src/text/a.ts", line), known).join()).toContain(finding);
  });

  test.each([
    "src/text/a.ts",
    "src/pacing/pacer.ts",
    "src/conversation/conversation.ts",
    "src/gateway/chunks.ts",
    "adapters/slack/write/pace.ts",
  ])("findEffects checks %s", (path) => {
    expect(findEffects(toSource(path, "setTimeout(f, 1);"), known)).toHaveLength(1);
  });

  test.each(["src/pacing/scheduler.ts", "src/bot/bot.ts", "src/gateway/client.ts"])(
    "findEffects does not check %s",
    (path) => {
      expect(findEffects(toSource(path, "setTimeout(f, 1);"), known)).toEqual([]);
    },
  );

  test("findEffects allows types of anything, packages that only calculate, given dates, and comments about effects", () => {
    const source = toSource(
      "src/text/a.ts",
      'import type { Stats } from "node:fs";',
      'import type { now } from "../clock.ts";',
      'import remend from "remend";',
      "// Never calls setTimeout(f).",
      "const day = new Date(0);",
      "const processed = fetchedLater(day);",
    );
    expect(findEffects(source, known)).toEqual([]);
  });

  test("findEffects ends with files that import each other", () => {
    const a = toSource("src/text/a.ts", 'import { b } from "./b.ts";');
    const b = toSource("src/text/b.ts", 'import { a } from "./a.ts";');
    expect(findEffects(a, new Map([a, b].map((source) => [source.path, source])))).toEqual([]);
  });
});

describe("findPlatformNames", () => {
  test.each([
    ["a string", 'if (platform === "slack") return;'],
    ["a name", "const createDiscordBudget = 1;"],
    ["a comment", "// As Slack has it."],
  ])("findPlatformNames finds a platform's name in the core in %s", (_, code) => {
    expect(findPlatformNames(toSource("src/bot/bot.ts", code))).toEqual([code]);
  });

  test.each(["src/platforms.ts", "adapters/slack/index.ts", "test/bot.test.ts"])(
    "findPlatformNames lets %s name a platform",
    (path) => expect(findPlatformNames(toSource(path, 'const name = "slack";'))).toEqual([]),
  );

  test("findPlatformNames lets a listed file name a platform in its comments only", () => {
    const code = 'const name = "slack";';
    expect(findPlatformNames(toSource("src/text/inline.ts", "// As Slack has it.", code))).toEqual([code]);
  });
});

describe("findCycles", () => {
  const one = toSource("src/a/one.ts", 'import type { T } from "../b/two.ts";');
  const two = toSource("src/b/two.ts", 'import { x } from "./three.ts";');
  const three = toSource("src/b/three.ts", 'import { y } from "../a/four.ts";');
  const four = toSource("src/a/four.ts", 'import { z } from "keyv";');

  test("findCycles finds folders that import each other, types included, even if no files do", () => {
    expect(findCycles([one, two, three, four], moduleOf)).toEqual([["src/a", "src/b"]]);
    expect(findCycles([one, two, three, four], (path) => path)).toEqual([]);
  });

  test("findCycles finds files that import each other through others", () => {
    const back = toSource("src/a/four.ts", 'import type { o } from "./one.ts";');
    expect(findCycles([one, two, three, back], (path) => path)).toEqual([
      ["src/a/four.ts", "src/a/one.ts", "src/b/three.ts", "src/b/two.ts"],
    ]);
  });

  test("findCycles treats a file next to the folders as a module", () => {
    expect(moduleOf("src/main.ts")).toBe("src/main.ts");
    expect(moduleOf("src/turn/turn.ts")).toBe("src/turn");
    expect(moduleOf("adapters/slack/index.ts")).toBe("adapters/slack/index.ts");
    expect(moduleOf("adapters/slack/write/sink.ts")).toBe("adapters/slack/write");
  });
});

describe("readsEnvironment", () => {
  test.each(["process.env.HOME", 'process.env["HOME"]', "process?.env", 'import { env } from "node:process";'])(
    "readsEnvironment finds %s",
    (line) => {
      expect(readsEnvironment(toSource("src/bot/bot.ts", line))).toBe(true);
    },
  );

  test("readsEnvironment allows programs' entry files and comments to name the environment", () => {
    expect(readsEnvironment(toSource("src/main.ts", "process.env"))).toBe(false);
    expect(readsEnvironment(toSource("src/sandbox/main.ts", "process.env"))).toBe(false);
    expect(readsEnvironment(toSource("src/bot/bot.ts", "// process.env"))).toBe(false);
    expect(readsEnvironment(toSource("src/bot/bot.ts", "process.exit(1)"))).toBe(false);
  });
});

test("hasDefaultExport finds both forms, except in configuration files", () => {
  expect(hasDefaultExport(toSource("src/a.ts", "export default function f() {}"))).toBe(true);
  expect(hasDefaultExport(toSource("src/a.ts", "export { a as default };"))).toBe(true);
  expect(hasDefaultExport(toSource("vitest.config.ts", "export default {};"))).toBe(false);
  expect(hasDefaultExport(toSource("src/a.d.ts", "export default x;"))).toBe(false);
  expect(hasDefaultExport(toSource("src/a.ts", "export const defaults = 1;"))).toBe(false);
});

/** Written in pieces, because the check also searches this file. */
function folder(...names: string[]): string {
  return `/${names.join("/")}`;
}

describe("findLocalTraces", () => {
  test("findLocalTraces finds folders of a machine, the checkout itself and registries", () => {
    expect(findLocalTraces(`see ${folder("home", "ada", "x")}`, [], "/x")).toEqual([folder("home", "ada")]);
    expect(findLocalTraces(`"${folder("Users", "ada")}"`, [], "/x")).toEqual([folder("Users", "ada")]);
    expect(findLocalTraces("in /srv/checkout/a", [], "/srv/checkout")).toEqual(["/srv/checkout"]);
    expect(findLocalTraces("from packages.example", ["packages.example"], "/x")).toEqual(["packages.example"]);
  });

  test("findLocalTraces ignores addresses, routes and relative paths", () => {
    const text = "https://example.com/home/page ./work/x src/work/x /data /app /slack/events";
    expect(findLocalTraces(text, ["packages.example"], "/app")).toEqual([]);
  });
});

test("findLooseVersions finds ranges, tags and addresses at every depth of a lockfile", () => {
  const loose = { a: "^1.0.0", b: "latest", c: "1.x", d: "git+https://example.com/d", e: { f: "~2.0.0" } };
  expect(findLooseVersions(loose)).toEqual(["a", "b", "c", "d", "f"]);
  expect(findLooseVersions({ a: "1.0.0", b: "2.0.0-rc.1", c: "npm:@x/y@1.2.3", d: { e: "$vitest" } })).toEqual([]);
});

test("findUnlocked finds packages that a lockfile names but lacks, looking up from each package", () => {
  const packages = {
    "": { dependencies: { a: "1.0.0" } },
    "node_modules/a": { dependencies: { b: "1.0.0", c: "2.0.0" }, optionalDependencies: { "@d/darwin": "1.0.0" } },
    "node_modules/a/node_modules/b": { dependencies: { c: "2.0.0" } },
    "node_modules/c": {},
  };
  expect(findUnlocked(packages)).toEqual(["@d/darwin"]);
  expect(findUnlocked({ ...packages, "node_modules/@d/darwin": { optionalDependencies: { b: "1.0.0" } } })).toEqual([
    "b",
  ]);
});

test("variablesOf reads set and commented variables, not sentences", () => {
  expect(variablesOf("A_B=1\n# C_D=2\n# Words about E=f\n#G=\n\nHOST=")).toEqual(["A_B", "C_D", "G", "HOST"]);
});
