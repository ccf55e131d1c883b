import { spawnSync } from "node:child_process";
import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { fileURLToPath } from "node:url";
import { parseEnv } from "node:util";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { readConfig } from "../src/config/config.ts";
import { accessRule } from "../src/config/policy/access.ts";
import { readPolicyFile } from "../src/config/policy/policy-file.ts";
import { ACTIONS } from "../src/port/events.ts";
import { FAULTS } from "../src/sandbox/faults.ts";
import { describeAccounts } from "../src/sandbox/models.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const readText = (path: string) => readFileSync(root + path, "utf8");
const DOCUMENTS = [
  "README.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  "SECURITY.md",
  ...readdirSync(`${root}docs`, { encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
];
const page = readFileSync(`${root}docs/sandbox.md`, "utf8");

interface NamedTest {
  path: string;
  name: string;
}

/** The rows below the heading of the rules, each with the tests that its two cells name. */
function readRules(markdown: string): { rule: string; server: NamedTest[]; client: NamedTest[] }[] {
  const table = markdown.slice(markdown.indexOf("| rule | server-side"));
  return Array.from(table.matchAll(/^\| (?!rule |-)(.+?) \| (.+?) \| (.+?) \|$/gm), ([, rule, server, client]) => ({
    rule: rule ?? "",
    server: readTests(server ?? "", "test/sandbox"),
    client: client === "server only" ? [] : readTests(client ?? "", "test/gateway"),
  }));
}

function readTests(cell: string, folder: string): NamedTest[] {
  return cell.split("<br>").map((entry) => {
    const [, file, name] = /^`([\w-]+)` (.+)$/.exec(entry) ?? [];
    if (file === undefined || name === undefined) throw new Error(`The table names no test in: ${entry}`);
    return { path: `${folder}/${file}.test.ts`, name };
  });
}

/** A test's name stands as a literal behind `test(`, behind `test.each(…)(`, or first in a row of a table of cases. */
function hasTest({ path, name }: NamedTest): boolean {
  if (!existsSync(root + path)) return false;
  const code = readFileSync(root + path, "utf8");
  const literal = JSON.stringify(name).replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`(?:\\btest\\(|\\)\\(|\\[)\\s*${literal}`).test(code);
}

/** What the adapters compare the ids of buttons, forms and menus with, as their sources say. */
function findIds(platform: string): string[] {
  const folder = `adapters/${platform}/interactions/`;
  const code = globSync(`${folder}*.ts`, { cwd: root }).map(readText).join("\n");
  const names = code.matchAll(/(?:callback_id|custom_id)(?:\.startsWith\(| [!=]== )([A-Z_]+)\b/g);
  const constants = [...names].map(([, name]) => new RegExp(`const ${name} = "([^"]+)"`).exec(code)?.[1] ?? name);
  const actions = [...code.matchAll(/^ {2}\w+: "(home_\w+)"/gm)].map(([, id]) => id);
  const forms = [...code.matchAll(/\["(form)", "(\w+)"/g)].map(([, form, kind]) => `${form}:${kind}`);
  return [...constants, ...actions, ...forms].filter((id) => id !== undefined);
}

describe("the list of what forms, buttons and menus bring back, in docs/security.md", () => {
  const text = readText("docs/security.md");
  const [, table = ""] = /## What forms, buttons and menus bring back\n([^]*?)\n## /.exec(text) ?? [];
  const rows = table.split("\n").filter((line) => /^\| (?:both|Slack|Discord) /.test(line));
  const listed = (on: string) =>
    rows
      .filter((row) => row.startsWith(`| ${on} `))
      .flatMap((row) => row.split(" | ")[1]?.match(/(?<=`)[^`]+(?=`)/g) ?? []);

  test("has every id that the adapters know", () => {
    expect(listed("both").filter((id) => id !== " ")).toEqual(expect.arrayContaining([...ACTIONS]));
    for (const [name, platform] of [
      ["Slack", "slack"],
      ["Discord", "discord"],
    ] as const) {
      const ids = findIds(platform);
      expect(ids.length).toBeGreaterThan(3);
      expect(listed(name)).toEqual(expect.arrayContaining(ids));
    }
  });

  test("names tests that there are", () => {
    const named = rows.map((row) => /`([\w./-]+)` ([^|]+) \|$/.exec(row));
    const missing = named.filter((test) => !hasTest({ path: test?.[1] ?? "", name: test?.[2] ?? "" }));
    expect(missing).toEqual([]);
    expect(named.length).toBeGreaterThan(10);
  });
});

describe("docs/sandbox.md", () => {
  const rules = readRules(page);

  test("names only tests that exist", () => {
    const named = rules.flatMap(({ server, client }) => [...server, ...client]);
    expect(named.filter((entry) => !hasTest(entry)).map(({ path, name }) => `${path}: ${name}`)).toEqual([]);
  });

  test("has a row for every rule, each with a test of the sandbox", () => {
    expect(rules.length).toBeGreaterThan(50);
    expect(rules.filter(({ server }) => server.length === 0)).toEqual([]);
    expect(new Set(rules.map(({ rule }) => rule)).size).toBe(rules.length);
  });

  test("knows a test that does not exist", () => {
    const path = "test/docs.test.ts";
    expect(hasTest({ path, name: "names only tests that exist" })).toBe(true);
    expect(hasTest({ path, name: "docs/sandbox.md" })).toBe(false);
    expect(hasTest({ path: "test/gone.test.ts", name: "names only tests that exist" })).toBe(false);
  });

  test("names every fault, every key and every model", () => {
    for (const name of Object.keys(FAULTS)) expect(page).toContain(`\`${name}\``);
    const words = describeAccounts().flatMap((line) => line.match(/sk-[\w-]+|sandbox-\w+/g) ?? []);
    for (const word of words) expect(page).toContain(word);
  });
});

/** What a document says and this repository does not have. */
function findStale(markdown: string): string[] {
  const paths = markdown.match(/(?<![\w/.])(?:src|adapters|test|bench|docs|deploy|\.ci)\/[\w./-]*\w/g) ?? [];
  const { scripts } = JSON.parse(readText("package.json")) as { scripts: Record<string, string> };
  const commands = Array.from(markdown.matchAll(/npm run ([\w:]+)/g), ([, name]) => name ?? "");
  return [...paths.filter((path) => !existsSync(root + path)), ...commands.filter((name) => !(name in scripts))];
}

describe("the documents", () => {
  test.each(DOCUMENTS)("%s names only files and commands that exist", (path) => {
    expect(findStale(readText(path))).toEqual([]);
  });

  test("know a file and a command that do not exist", () => {
    const stale =
      "`src/bot/bot.ts`, `src/gone.ts`, [it](docs/gone.md), `adapters/<platform>/`; npm run gone, npm run check";
    expect(findStale(stale)).toEqual(["src/gone.ts", "docs/gone.md", "gone"]);
  });
});

describe("README.md", () => {
  test("is read in a few minutes: a thousand words at most", () => {
    expect(readText("README.md").split(/\s+/).length).toBeLessThanOrEqual(1000);
  });
});

describe("docs/architecture.md", () => {
  /** The files of a path through the code, in the order in which they run. */
  const filesOf = (path: string) => {
    const [, list = ""] =
      new RegExp(`<!-- path: ${path} -->([^]*?)<!-- end -->`).exec(readText("docs/architecture.md")) ?? [];
    return [...list.matchAll(/^\d+\. `([^`]+)`/gm)].map(([, file = ""]) => file);
  };

  test.each([
    ["message", 15],
    ["delta", 12],
    ["picture", 12],
  ])("follows a %s through at most %d files, all of which there are", (path, most) => {
    const files = filesOf(path);
    expect(files.length).toBeGreaterThan(4);
    expect(files.length).toBeLessThanOrEqual(most);
    expect(files.filter((file) => !existsSync(root + file))).toEqual([]);
  });

  test("names no folder of the core that there is not, and every one that there is", () => {
    const table = /## Floors([^]*?)\n## /.exec(readText("docs/architecture.md"))?.[1] ?? "";
    const rows = table.split("\n").filter((line) => line.startsWith("|"));
    const named = new Set([...rows.join().matchAll(/`([\w-]+)\/`/g)].map(([, name]) => name));
    const there = readdirSync(`${root}src`, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    const names = new Set(there.map(({ name }) => name));
    expect([...named].filter((name) => !names.has(name ?? ""))).toEqual([]);
    expect([...names].filter((name) => !named.has(name))).toEqual([]);
  });
});

describe("docs/troubleshooting.md", () => {
  const rows = readText("docs/troubleshooting.md");
  const sources = globSync("{src,adapters,.ci}/**/*.{ts,mjs}", { cwd: root })
    .map((path) => readText(path).replaceAll(/"\s*\+\s*"/g, ""))
    .join("\n");
  /** What a cell quotes of the program's words; `…` and figures stand for what differs. */
  const quotesOf = (cell: string) => cell.split("…").map((part) => part.trim());

  test("names only lines of the log that the code has", () => {
    const table = rows.slice(rows.indexOf("## What the log says"));
    const lines = [...table.matchAll(/^\| `([^`]+)` \|/gm)].map(([, line = ""]) => line);
    expect(lines.length).toBeGreaterThan(20);
    expect(lines.filter((line) => !sources.includes(line))).toEqual([]);
  });

  test("names only sentences that the code says", () => {
    const table = rows.slice(rows.indexOf("## It does not start"), rows.indexOf("## What the log says"));
    const cells = [...table.matchAll(/^\| (\*[^|]+) \|/gm)].map(([, cell = ""]) => cell);
    const said = cells.flatMap((cell) => [...cell.matchAll(/\*([^*]+)\*/g)].flatMap(([, text = ""]) => quotesOf(text)));
    expect(said.length).toBeGreaterThan(9);
    expect(said.filter((part) => !sources.includes(part))).toEqual([]);
  });
});

/** Fenced blocks of a document in a language, in their order, as they stand behind a list's blanks. */
function blocksOf(markdown: string, language: string): string[] {
  return Array.from(
    markdown.matchAll(new RegExp(`^( *)\`\`\`${language}\n([^]*?)^ *\`\`\`$`, "gm")),
    ([, indent, block]) => (block ?? "").replaceAll(new RegExp(`^${indent}`, "gm"), ""),
  );
}

/** Links of a document to files and headings of this repository that are not there. */
function findBrokenLinks(path: string, markdown: string): string[] {
  const prose = markdown.replaceAll(/^( *)```[^]*?^ *```$/gm, "").replaceAll(/`[^`\n]*`/g, "");
  const targets = Array.from(prose.matchAll(/\]\(([^)\s]+)\)/g), ([, target = ""]) => target);
  return targets.filter((target) => {
    if (/^[a-z]+:/.test(target)) return false;
    const [file = "", anchor] = target.split("#");
    const found = file === "" ? path : posix.join(posix.dirname(path), file);
    if (!existsSync(root + found)) return true;
    if (anchor === undefined) return false;
    const headings = Array.from(readText(found).matchAll(/^#+ (.+)$/gm), ([, heading = ""]) => toAnchor(heading));
    return !headings.includes(anchor);
  });
}

/** As GitHub makes it. */
function toAnchor(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");
}

describe("what the documents lead to", () => {
  test.each(DOCUMENTS)("%s links to files and headings that there are", (path) => {
    expect(findBrokenLinks(path, readText(path))).toEqual([]);
  });

  test("a link to a file or a heading that there is not is found", () => {
    const links = "[a](gone.md), [b](mcp.md#gone), [c](mcp.md#what-the-model-gets), [d](https://example.com/gone)";
    expect(findBrokenLinks("docs/tools.md", links)).toEqual(["gone.md", "mcp.md#gone"]);
  });

  test("is a shell's language in every command", () => {
    const blocks = DOCUMENTS.flatMap((path) => blocksOf(readText(path), "sh"));
    expect(blocks.length).toBeGreaterThan(12);
    const { status, stderr } = spawnSync("bash", ["-n"], { input: blocks.join("\n"), encoding: "utf8" });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  });

  test("is a service of compose.yaml in every command of Compose", () => {
    const { services } = parse(readText("compose.yaml"), { merge: true }) as { services: Record<string, unknown> };
    const commands = DOCUMENTS.flatMap(
      (path) => readText(path).match(/docker compose [^\n`]*\b(?:up|exec)\b[^\n`]*/g) ?? [],
    );
    const named = commands.flatMap(
      (command) => command.replace(/^.*?\b(?:up|exec)\b/, "").match(/(?<= )[a-z]+/g) ?? [],
    );
    expect(commands.length).toBeGreaterThan(2);
    expect([...new Set(named)].filter((name) => !(name in services))).toEqual([]);
  });

  test("is a configuration that starts in every block of variables", () => {
    const values: Record<string, string> = { DISCORD_TOKEN: `M${"A".repeat(23)}.AAAAAA.${"A".repeat(27)}` };
    const blocks = DOCUMENTS.flatMap((path) => blocksOf(readText(path), "ini"));
    expect(blocks.length).toBeGreaterThanOrEqual(5);
    for (const block of blocks) {
      const given = parseEnv(block.replaceAll(/<[^>]+>/g, "given").replaceAll("…", "given"));
      for (const name of Object.keys(given)) given[name] = values[name] ?? given[name];
      expect(() => readConfig(given)).not.toThrow();
    }
  });
});

test("docs/using.md has every command", () => {
  const { features } = JSON.parse(readText("manifest.json")) as {
    features: { slash_commands: { command: string }[] };
  };
  const page = readText("docs/using.md");
  expect(features.slash_commands.filter(({ command }) => !page.includes(`\`${command}\``))).toEqual([]);
});

describe("docs/policy.md", () => {
  test("has an example that is a policy", () => {
    const [example = ""] = blocksOf(readText("docs/policy.md"), "yaml");
    expect(readPolicyFile("example", () => example)).toMatchObject({
      problems: [],
      policy: { access: {}, quotas: {} },
    });
  });

  test("has every word of its rules, and no other", () => {
    const [head, ...rows] = readText("docs/policy.md").match(/^\| .+\|$/gm) ?? [];
    expect(head).toContain("words");
    const words = (row = "") => Array.from(row.split("|")[3]?.matchAll(/`([^`]+)`/g) ?? [], ([, word = ""]) => word);
    const rules = [
      (word: string) => accessRule.safeParse({ allow: word }),
      (word: string) => accessRule.safeParse({ allow: "chat", to: word }),
      (word: string) => accessRule.safeParse({ allow: "chat", in: word }),
    ];
    for (const [row, parse] of rules.entries()) {
      const unknown = words(rows[row]).filter((word) => !parse(word.replace(/:$/, ":name")).success);
      expect(unknown).toEqual([]);
      const told = parse("").error?.issues[0]?.message.match(/[a-z]+(?=,|:|$)/g) ?? [];
      expect(told.length).toBeGreaterThan(5);
      expect(told.filter((word) => !words(rows[row]).some((each) => each.replace(":", "") === word))).toEqual([]);
    }
  });
});
