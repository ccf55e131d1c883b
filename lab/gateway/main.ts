// `npm run lab:gateway` serves one dialect or the sandbox with all faults, or measures all dialects.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { FAULTS } from "../../src/sandbox/faults.ts";
import { startSandbox } from "../../src/sandbox/server.ts";
import { measureAll } from "./contract.ts";
import { DIALECT_NAMES, type DialectName } from "./dialects/index.ts";
import { WIRE_FAULTS } from "./faults.ts";
import { withTables } from "./matrix.ts";
import { startDialect } from "./server.ts";
import { isTrait, TRAIT_NAMES } from "./traits.ts";

const PORT = 8788;
const PAGE = join(import.meta.dirname, "../../docs/gateway.md");

const USAGE = `npm run lab:gateway -- DIALECT [TRAIT …]   serves one dialect on port ${PORT} (or GATEWAY_PORT)
npm run lab:gateway -- sandbox             serves the plain sandbox with every fault
npm run lab:gateway -- --matrix            runs all conversations against every dialect and prints the matrix
npm run lab:gateway -- --matrix --write    writes it to docs/gateway.md

Dialects: ${DIALECT_NAMES.join(", ")}
Traits: ${TRAIT_NAMES.join(", ")}
Faults: ${Object.keys({ ...FAULTS, ...WIRE_FAULTS }).join(", ")}`;

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

async function serve(dialect: DialectName | "sandbox", words: readonly string[]): Promise<void> {
  const port = Number(process.env["GATEWAY_PORT"] || PORT);
  const running =
    dialect === "sandbox"
      ? await startPlain(port)
      : await startDialect({ dialect, port, traits: words.filter(isTrait) });
  print(`GATEWAY_BASE_URL=${running.url}`);
  print(`GATEWAY_API_KEY=${running.apiKey}`);
  print(`CHAT_MODEL=${running.chatModel}`);
  if (running.imageModel !== undefined) print(`IMAGE_MODEL=${running.imageModel}`);
  const stop = () => void running.close();
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
}

async function startPlain(port: number) {
  const log = pino({ level: "silent" });
  const sandbox = await startSandbox({ host: "127.0.0.1", port, log, faults: WIRE_FAULTS });
  const names = { apiKey: "sk-sandbox-all", chatModel: "sandbox-chat", imageModel: "sandbox-image" };
  return { url: sandbox.url, close: sandbox.close, ...names };
}

/** Prints the matrix or writes it to the page. Failures go to stderr. */
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
else if (first === "sandbox") await serve(first, rest);
else if (dialect !== undefined) await serve(dialect, rest);
else print(USAGE);
