// `npm run lab:gateway`: serves one dialect, or measures all of them.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { measureAll } from "./contract.ts";
import { DIALECT_NAMES, type DialectName } from "./dialects/index.ts";
import { withTables } from "./matrix.ts";
import { startDialect } from "./server.ts";
import { isTrait, TRAIT_NAMES } from "./traits.ts";

const PORT = 8788;
const PAGE = join(import.meta.dirname, "../../docs/gateway.md");

const USAGE = `npm run lab:gateway -- DIALECT [TRAIT …]   serves one dialect on port ${PORT} (or GATEWAY_PORT)
npm run lab:gateway -- --matrix            runs all conversations against every dialect and prints the matrix
npm run lab:gateway -- --matrix --write    writes it to docs/gateway.md

Dialects: ${DIALECT_NAMES.join(", ")}
Traits: ${TRAIT_NAMES.join(", ")}`;

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

async function serve(dialect: DialectName, words: readonly string[]): Promise<void> {
  const port = Number(process.env["GATEWAY_PORT"] || PORT);
  const running = await startDialect({ dialect, port, traits: words.filter(isTrait) });
  print(`GATEWAY_BASE_URL=${running.url}`);
  print(`GATEWAY_API_KEY=${running.apiKey}`);
  print(`CHAT_MODEL=${running.chatModel}`);
  if (running.imageModel !== undefined) print(`IMAGE_MODEL=${running.imageModel}`);
  const stop = () => void running.close();
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
}

/** Prints the matrix or writes it to the page. Reports failures on stderr. */
async function showMatrix(isWritten: boolean): Promise<void> {
  const rows = await measureAll(pino({ level: "silent" }));
  const page = isWritten ? await readFile(PAGE, "utf8") : "<!-- dialects -->\n\n<!-- end of dialects -->";
  if (isWritten) await writeFile(PAGE, withTables(page, rows));
  else print(withTables(page, rows));
  for (const [name, row] of rows) {
    for (const [conversation, cell] of row) {
      if (cell.kind === "failed") process.stderr.write(`${name}, ${conversation}: ${cell.why}\n`);
    }
  }
}

const [first, ...rest] = process.argv.slice(2);
const dialect = DIALECT_NAMES.find((name) => name === first);
if (first === "--matrix") await showMatrix(rest.includes("--write"));
else if (dialect !== undefined) await serve(dialect, rest);
else print(USAGE);
