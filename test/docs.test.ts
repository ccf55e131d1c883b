import { spawnSync } from "node:child_process";
import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { fileURLToPath } from "node:url";
import { parseEnv } from "node:util";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { toShortcuts } from "../adapters/slack/install/slash-commands.ts";
import { WIRE_FAULTS } from "../lab/gateway/faults.ts";
import { COMMANDS } from "../src/commands/commands.ts";
import { accessRule } from "../src/config/policy/access.ts";
import { readPolicyFile } from "../src/config/policy/policy-file.ts";
import { ACTIONS } from "../src/port/events.ts";
import { FAULTS } from "../src/sandbox/faults.ts";
import { describeAccounts } from "../src/sandbox/models.ts";
import { readConfig } from "./support/config.ts";

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
const ruleTable = readFileSync(`${root}test/sandbox/README.md`, "utf8");
const labPage = readFileSync(`${root}lab/gateway/README.md`, "utf8");

interface NamedTest {
  path: string;
  name: string;
}

/** The rows under the heading of the rules. Each has the tests from its two cells. */
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

/** A test's name is a literal after `test(`, after `test.each(…)(`, or first in a row of a table of cases. */
function hasTest({ path, name }: NamedTest): boolean {
  if (!existsSync(root + path)) return false;
  const code = readFileSync(root + path, "utf8");
  const literal = JSON.stringify(name).replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`(?:\\btest\\(|\\)\\(|\\[)\\s*${literal}`).test(code);
}

/** The ids of buttons, forms and menus that occur in comparisons in the adapters' sources. */
function findIds(platform: string): string[] {
  const files = ["act/*", "install/slash-commands"].map((name) => `adapters/${platform}/${name}.ts`);
  const code = globSync(files, { cwd: root }).map(readText).join("\n");
  const names = code.matchAll(/(?:callback_id|custom_id)(?:\.startsWith\(| [!=]== )([A-Z_]+)\b/g);
  const constants = [...names].map(([, name]) => new RegExp(`const ${name} = "([^"]+)"`).exec(code)?.[1] ?? name);
  const submissions = [...code.matchAll(/\w+_FORM = "(\w+)"/g)].map(([, id]) => id);
  const actions = [...code.matchAll(/^ {2}\w+: "(home_\w+)"/gm)].map(([, id]) => id);
  const forms = [...code.matchAll(/\["(form)", "(\w+)"/g)].map(([, form, kind]) => `${form}:${kind}`);
  return [...constants, ...submissions, ...actions, ...forms].filter((id) => id !== undefined);
}

/** The ids that a form, button or menu brings back, by platform, each with a test of what the bot checks. */
const CHECKS = [
  {
    on: "both",
    ids: "stop retry continue regenerate show explain approve always deny rerun good bad again vary upscale delete".split(
      " ",
    ),
    path: "test/bot/every-way.test.ts",
    name: "a forged id in the button %s does nothing for a moderator of another channel",
  },
  {
    on: "both",
    ids: ["schedule", "reschedule", "unschedule", "pause", "resume"],
    path: "test/schedules/runs.test.ts",
    name: "the buttons of a schedule do nothing for others",
  },
  {
    on: "both",
    ids: ["edit"],
    path: "test/imagine/menu.test.ts",
    name: "the menu describes nothing to people who cannot see the image",
  },
  {
    on: "slack",
    ids: ["imagine_form"],
    path: "test/adapters/slack/act/imagine-form.test.ts",
    name: "an imagine form is rejected if anyone but its opener sends it",
  },
  {
    on: "slack",
    ids: ["persona_form"],
    path: "test/adapters/slack/act/persona-form.test.ts",
    name: "/persona with words is a command, and no one can send another person's form",
  },
  {
    on: "slack",
    ids: ["reason_form"],
    path: "test/adapters/slack/act/reason-form.test.ts",
    name: "a bad rating needs no reason, and no one else can send its form",
  },
  {
    on: "slack",
    ids: ["schedule_form"],
    path: "test/schedules/runs.test.ts",
    name: "a schedule's form is for its maker and managers, and a manager who changes it becomes its maker",
  },
  {
    on: "slack",
    ids: ["home", "home_model", "home_draw", "home_export", "home_forget"],
    path: "test/adapters/slack/act/home.test.ts",
    name: "the home tab of one person does nothing for another",
  },
  {
    on: "slack",
    ids: ["ask_about"],
    path: "test/adapters/slack/act/shortcuts.test.ts",
    name: "Ask about this explains how to invite the bot to a channel that it is not in",
  },
  {
    on: "slack",
    ids: ["command_message_catchup", "command_global_catchup"],
    path: "test/catchup/catchup.test.ts",
    name: "a channel that the asker cannot open is neither read nor named, also if their right ends meanwhile",
  },
  {
    on: "slack",
    ids: ["imagine_from_message", "imagine_global"],
    path: "test/adapters/slack/act/imagine-form.test.ts",
    name: "a forged imagine form gets no files of another workspace",
  },
  {
    on: "discord",
    ids: ["form:edit"],
    path: "test/bot/every-way.test.ts",
    name: "a forged image id in a form creates no image for a person in another channel",
  },
  {
    on: "discord",
    ids: ["form:reference"],
    path: "test/adapters/discord/act/imagine-form.test.ts",
    name: "a forged form cannot read a message of another channel",
  },
  {
    on: "discord",
    ids: ["persona"],
    path: "test/commands/persona.test.ts",
    name: "/persona lets only the channel's managers change it, if the platform knows them",
  },
  {
    on: "discord",
    ids: ["fill:"],
    path: "test/people/feedback.test.ts",
    name: "the bot ignores a rating by a person who cannot see the answer",
  },
  // The menus of messages. Discord lets only people who see a message open its menu.
  {
    on: "discord",
    ids: ["Ask about this", "Use as reference"],
    path: "test/adapters/discord/act/dispatch.test.ts",
    name: "'Ask about this' in a message's menu asks the bot about that message, with its text and files",
  },
  {
    on: "discord",
    ids: ["What did I miss?"],
    path: "test/catchup/catchup.test.ts",
    name: "a channel that the asker cannot open is neither read nor named, also if their right ends meanwhile",
  },
];

describe("the ids that forms, buttons and menus bring back", () => {
  const known = (on: string) => CHECKS.filter((check) => check.on === on).flatMap(({ ids }) => ids);

  test("every id that the adapters know has a test of what the bot checks", () => {
    expect(known("both")).toEqual(expect.arrayContaining([...ACTIONS]));
    const shortcuts = COMMANDS.filter(({ shortcut }) => shortcut !== undefined);
    for (const [platform, given] of [
      ["slack", toShortcuts(shortcuts).map((shortcut) => shortcut.callback_id)],
      ["discord", shortcuts.flatMap(({ shortcut }) => shortcut?.title ?? [])],
    ] as const) {
      const ids = [...findIds(platform), ...given];
      expect(ids.length).toBeGreaterThan(3);
      expect(known(platform)).toEqual(expect.arrayContaining(ids));
    }
    expect(CHECKS.filter((check) => !hasTest(check))).toEqual([]);
  });
});

describe("test/sandbox/README.md", () => {
  const rules = readRules(ruleTable);

  test("test/sandbox/README.md names only tests that exist", () => {
    const named = rules.flatMap(({ server, client }) => [...server, ...client]);
    expect(named.filter((entry) => !hasTest(entry)).map(({ path, name }) => `${path}: ${name}`)).toEqual([]);
  });

  test("test/sandbox/README.md has a row for every rule, each with a test of the sandbox", () => {
    expect(rules.length).toBeGreaterThan(50);
    expect(rules.filter(({ server }) => server.length === 0)).toEqual([]);
    expect(new Set(rules.map(({ rule }) => rule)).size).toBe(rules.length);
  });

  test("the check of test/sandbox/README.md finds a test that does not exist", () => {
    const path = "test/docs.test.ts";
    expect(hasTest({ path, name: "test/sandbox/README.md names only tests that exist" })).toBe(true);
    expect(hasTest({ path, name: "test/sandbox/README.md" })).toBe(false);
    expect(hasTest({ path: "test/gone.test.ts", name: "test/sandbox/README.md names only tests that exist" })).toBe(
      false,
    );
  });
});

describe("the documents of the sandbox", () => {
  test("docs/sandbox.md names every fault, every key and every model", () => {
    for (const name of Object.keys(FAULTS)) expect(page).toContain(`\`${name}\``);
    const words = describeAccounts().flatMap((line) => line.match(/sk-[\w-]+|sandbox-\w+/g) ?? []);
    for (const word of words) expect(page).toContain(word);
  });

  test("lab/gateway/README.md names every fault of the lab", () => {
    for (const name of Object.keys(WIRE_FAULTS)) expect(labPage).toContain(`\`${name}\``);
  });
});

/** The files and commands that a document names and this repository lacks. */
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

  test("the check of the documents finds a missing file and a missing command", () => {
    const stale =
      "`src/bot/bot.ts`, `src/gone.ts`, [it](docs/gone.md), `adapters/<platform>/`; npm run gone, npm run check";
    expect(findStale(stale)).toEqual(["src/gone.ts", "docs/gone.md", "gone"]);
  });
});

describe("README.md", () => {
  test("README.md has at most a thousand words", () => {
    expect(readText("README.md").split(/\s+/).length).toBeLessThanOrEqual(1000);
  });
});

describe("docs/architecture.md", () => {
  /** The files on a path through the code, in the order in which they run. */
  const filesOf = (path: string) => {
    const [, list = ""] =
      new RegExp(`<!-- path: ${path} -->([^]*?)<!-- end -->`).exec(readText("docs/architecture.md")) ?? [];
    return [...list.matchAll(/^\d+\. `([^`]+)`/gm)].map(([, file = ""]) => file);
  };

  test.each([
    ["message", 15],
    ["delta", 12],
    ["picture", 12],
    ["schedule", 8],
  ])("docs/architecture.md follows a %s through at most %d files, all of which exist", (path, most) => {
    const files = filesOf(path);
    expect(files.length).toBeGreaterThan(4);
    expect(files.length).toBeLessThanOrEqual(most);
    expect(files.filter((file) => !existsSync(root + file))).toEqual([]);
  });

  test("docs/architecture.md names exactly the folders of the core", () => {
    const table = /## Layers([^]*?)\n## /.exec(readText("docs/architecture.md"))?.[1] ?? "";
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
  /** Quotations from the program in a cell. `…` and figures stand for parts that vary. */
  const quotesOf = (cell: string) => cell.split("…").map((part) => part.trim());

  test("docs/troubleshooting.md quotes only lines that the code logs", () => {
    const table = rows.slice(rows.indexOf("## What the log says"));
    const lines = [...table.matchAll(/^\| `([^`]+)` \|/gm)].map(([, line = ""]) => line);
    expect(lines.length).toBeGreaterThan(9);
    expect(lines.filter((line) => !sources.includes(line))).toEqual([]);
  });

  test("docs/troubleshooting.md quotes only sentences in the code", () => {
    const table = rows.slice(rows.indexOf("## It does not start"), rows.indexOf("## What the log says"));
    const cells = [...table.matchAll(/^\| (\*[^|]+) \|/gm)].map(([, cell = ""]) => cell);
    const said = cells.flatMap((cell) => [...cell.matchAll(/\*([^*]+)\*/g)].flatMap(([, text = ""]) => quotesOf(text)));
    expect(said.length).toBeGreaterThan(9);
    expect(said.filter((part) => !sources.includes(part))).toEqual([]);
  });
});

/** A document's fenced blocks in one language, in order, without a list's indentation. */
function blocksOf(markdown: string, language: string): string[] {
  return Array.from(
    markdown.matchAll(new RegExp(`^( *)\`\`\`${language}\n([^]*?)^ *\`\`\`$`, "gm")),
    ([, indent, block]) => (block ?? "").replaceAll(new RegExp(`^${indent}`, "gm"), ""),
  );
}

/** A document's links to files and headings in this repository that do not exist. */
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

/** The anchor that GitHub creates for a heading. */
function toAnchor(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");
}

describe("links and commands in the documents", () => {
  test.each(DOCUMENTS)("%s links to existing files and headings", (path) => {
    expect(findBrokenLinks(path, readText(path))).toEqual([]);
  });

  test("the check of links finds a missing file and a missing heading", () => {
    const links = "[a](gone.md), [b](mcp.md#gone), [c](mcp.md#what-the-model-gets), [d](https://example.com/gone)";
    expect(findBrokenLinks("docs/tools.md", links)).toEqual(["gone.md", "mcp.md#gone"]);
  });

  test("every command in the documents has a shell's language", () => {
    const blocks = DOCUMENTS.flatMap((path) => blocksOf(readText(path), "sh"));
    expect(blocks.length).toBeGreaterThan(12);
    const { status, stderr } = spawnSync("bash", ["-n"], { input: blocks.join("\n"), encoding: "utf8" });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  });

  test("every command of Compose in the documents names a service of compose.yaml", () => {
    const { services } = parse(readText("compose.yaml"), { merge: true }) as { services: Record<string, unknown> };
    const commands = DOCUMENTS.flatMap(
      (path) => readText(path).match(/docker compose [^\n`]*\b(?:up|exec|run)\b[^\n`]*/g) ?? [],
    );
    const named = commands.flatMap(
      // The name of the service comes before the command to run in it.
      (command) =>
        command.match(/(?:\b(?:exec|run)\b(?: -\S+(?: \/\S+)?)* |\bup\b.*? (?=[a-z]))([a-z]+)(?= |$)/)?.[1] ?? [],
    );
    expect(commands.length).toBeGreaterThan(2);
    expect([...new Set(named)].filter((name) => !(name in services))).toEqual([]);
  });

  test("every block of variables in the documents is a configuration that starts", () => {
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
  test("the example in docs/policy.md is a valid policy", () => {
    const [example = ""] = blocksOf(readText("docs/policy.md"), "yaml");
    expect(readPolicyFile("example", () => example)).toMatchObject({
      problems: [],
      policy: { access: {}, quotas: {} },
    });
  });

  test("docs/policy.md has exactly the words of rules", () => {
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
