import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const run = promisify(execFile);
const root = fileURLToPath(new URL("..", import.meta.url));
const page = readFileSync(`${root}docs/extending.md`, "utf8");

/** A section of the page: the new file, and the entry in a list in another file. */
const SECTION = /Write `([^`]+)` in `([^`]+)`, and add `([^`]+)` to the list in `([^`]+)`:\n\n```ts\n([^]*?)```/g;
const COPIED = ["src", "adapters", "package.json", "tsconfig.json"];

interface Example {
  path: string;
  entry: string;
  list: string;
  code: string;
}

const examples = Array.from(
  page.matchAll(SECTION),
  ([, name = "", place = "", entry = "", list = "", code = ""]): Example => {
    return { path: place + name, entry, list, code };
  },
);
let folder = "";

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "palaver-extending-"));
  for (const name of COPIED) cpSync(root + name, join(folder, name), { recursive: true });
  symlinkSync(`${root}node_modules`, join(folder, "node_modules"));
  for (const { path, entry, list, code } of examples) {
    writeFileSync(join(folder, path), code);
    const [name = ""] = /\w+$/.exec(entry) ?? [];
    const source = readFileSync(join(folder, list), "utf8");
    // The list is the first array or object whose entries have separate lines.
    const extended = source.replace(/^(?:export )?const [^\n]*[[{]\n/m, (head) => `${head}  ${entry},\n`);
    if (dirname(list) !== dirname(path) || extended === source) throw new Error(`${list} has no list.`);
    writeFileSync(join(folder, list), `import { ${name} } from "${path.replace(dirname(path), ".")}";\n${extended}`);
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a program that imports the extended service and prints JSON. */
async function evaluate(program: string): Promise<unknown> {
  const options = ["--disable-warning=ExperimentalWarning", "--input-type=module", "--eval", program];
  const { stdout } = await run(process.execPath, options, { cwd: folder });
  return JSON.parse(stdout);
}

describe("docs/extending.md", () => {
  test("docs/extending.md shows a new tool, command and setting, each as one file and one entry of a list", () => {
    expect(examples.map(({ path }) => dirname(path))).toEqual(["src/tools", "src/commands", "src/settings"]);
  });

  test("the examples of docs/extending.md compile with the service", { timeout: 120_000 }, async () => {
    writeFileSync(
      join(folder, "tsconfig.examples.json"),
      JSON.stringify({ extends: "./tsconfig.json", include: examples.flatMap(({ path, list }) => [path, list]) }),
    );
    await run(join(root, "node_modules/.bin/tsc"), ["-p", "tsconfig.examples.json"], { cwd: folder });
  });

  test("the model gets the tool of docs/extending.md and can call it", async () => {
    const program = `
      import { createTools } from "./src/tools/tools.ts";
      import { runCall } from "./src/tools/tool.ts";
      const tools = createTools({ history: {}, adapterOf() {}, files: {}, fetchUrlHosts: [], now: Date.now });
      const tool = tools.find(({ name }) => name === "roll_dice");
      const args = { sides: 6 };
      const { text } = await runCall({ tool, args }, { conversationId: "c" }, new AbortController().signal);
      console.log(JSON.stringify([tool.describeCall(args), Number(text)]));`;
    expect(await evaluate(program)).toEqual(["rolling a die with 6 sides", expect.toSatisfy((n) => n >= 1 && n <= 6)]);
  });

  test("the help and Slack's manifest list the command and setting of docs/extending.md, and both answer", async () => {
    const program = `
      import { toSlashCommands } from "./adapters/slack/install/slash-commands.ts";
      import { COMMANDS, createCommands } from "./src/commands/commands.ts";
      import { describeSettings } from "./src/settings/list.ts";
      const kept = {};
      const said = [];
      const commands = createCommands({
        access: { isAdmin: () => true, findRefusal: async () => undefined },
        audit: { note: async () => true },
        settings: {
          read: async () => ({ ...kept, isKnown: true }),
          set: async (_, name, value) => (kept[name] = value, true),
        },
        modelLists: {}, models: {}, people: {}, quota: {}, usage: {}, chatRules: {}, history: {},
      });
      const sink = { post: async ({ markdown }) => void said.push(markdown) };
      const give = (name, text) =>
        commands.get(name)({ key: "k", text, author: { id: "ada", name: "Ada" }, reply: {} }, sink);
      await give("whoami", "");
      await give("language", "German");
      await give("language", "");
      const listed = toSlashCommands(COMMANDS).filter(({ command }) => /whoami|language/.test(command));
      console.log(JSON.stringify({ said, listed: listed.map(({ command }) => command), shown: describeSettings(kept) }));`;
    expect(await evaluate(program)).toEqual({
      said: [
        "You are Ada, and an admin.",
        "I answer in German.",
        "I answer in German. To change this, add a language, or `default`.",
      ],
      listed: expect.arrayContaining(["/whoami", "/language"]),
      shown: ["Language: German"],
    });
  });
});
