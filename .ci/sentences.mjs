// `npm run sentences` prints everything that Palaver says, with file and line: to people in a chat, on the page or in
// the dashboard, and to operators in the log and the terminal. Read it aloud after changing a sentence.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { parseSync, Visitor } from "oxc-parser";

const FILES = ["src/*.ts", "adapters/*.ts", ":!src/sandbox", ":!*.d.ts"];
/** At least three words, or two with punctuation at the end. */
const SENTENCE = /\p{L}{2,}\S*\s+\S*\p{L}\S*\s+\S*\p{L}|\p{L}{2,}\S*\s+\S*\p{L}\S*[.!?…]$/u;
const NO_PROSE =
  /\b(?:SELECT|INSERT|UPDATE|DELETE FROM|CREATE TABLE|PRAGMA|redis\.call)\b|[\w-] > [\w.-]|^M\d|^[.#]?\w+, [.#]?\w+ /;
const TAGS = /<!--.*?-->|<style.*?<\/style>|<[a-z/](?:[^<>"]|"[^"]*")*>/gsu;
const OPERATORS = /^src\/(?:admin|backup|config|doctor|log|main|mcp|person|setup|store)|\/(?:check|options|setup)\.ts$/;
const LOG = /^(?:trace|debug|info|warn|error|fatal)$/;

const rows = { people: [], operators: [] };
for (const file of execFileSync("git", ["ls-files", ...FILES], { encoding: "utf8" })
  .trim()
  .split("\n")) {
  const source = readFileSync(file, "utf8");
  const lines = source.split("\n");
  const lineAt = (start) => source.slice(0, start).split("\n").length;
  const logged = new Set();
  const note = (start, text) => {
    const isOperators = logged.has(start) || OPERATORS.test(file);
    for (const part of text.replaceAll(TAGS, "\n\n").split(/\n\s*\n/)) {
      const sentence = part.trim().replaceAll(/\s+/g, " ");
      if (!SENTENCE.test(sentence) || NO_PROSE.test(sentence)) continue;
      rows[isOperators ? "operators" : "people"].push(`${file}:${lineAt(start)}\t${sentence}`);
    }
  };
  new Visitor({
    CallExpression({ callee, arguments: given }) {
      if (callee.type === "MemberExpression" && LOG.test(callee.property.name)) {
        for (const argument of given) logged.add(argument.start);
      }
    },
    Literal({ value, start }) {
      if (typeof value === "string" && !/^\s*(?:import|export)\b/.test(lines[lineAt(start) - 1])) note(start, value);
    },
    TemplateLiteral({ quasis, start }) {
      note(start, quasis.map(({ value }) => value.cooked).join("…"));
    },
  }).visit(parseSync(file, source).program);
}
for (const [readers, found] of Object.entries(rows)) {
  process.stdout.write(`# What ${readers} read: ${found.length} sentences\n${found.join("\n")}\n\n`);
}
