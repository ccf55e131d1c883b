// Renders the measured conversations as Markdown.
import { type Cell, CONVERSATION_NAMES, type Row } from "./contract.ts";
import type { Dialect } from "./dialect.ts";
import { DIALECTS, type DialectName } from "./dialects/index.ts";

/** A table of the settings for each vendor. */
function describeSettings(names: readonly DialectName[]): string {
  const head = ["", "`GATEWAY_BASE_URL`", "`CHAT_MODEL`", "`IMAGE_MODEL`"];
  const body = names.map((name) => {
    const { title, address, chatModel, imageModel }: Dialect = DIALECTS[name];
    return [title, `\`${address}\``, `\`${chatModel}\``, imageModel === undefined ? "" : `\`${imageModel}\``];
  });
  return toTable([head, ...body]);
}

/** The matrix, followed by the sentences that users read in place of an answer. */
function toMarkdown(rows: ReadonlyMap<DialectName, Row>): string {
  const notes: string[] = [];
  const noteOf = (note: string) => {
    if (!notes.includes(note)) notes.push(note);
    return `${notes.indexOf(note) + 1}`;
  };
  const head = ["", ...CONVERSATION_NAMES];
  const body = [...rows].map(([name, row]) => [
    DIALECTS[name].title,
    ...CONVERSATION_NAMES.map((conversation) => toText(row.get(conversation), noteOf)),
  ]);
  return [toTable([head, ...body]), "", ...notes.map((note, index) => `${index + 1}. ${note}`)].join("\n");
}

/** The generated part of `docs/gateway.md`. */
const MARKED = /(<!-- dialects -->\n)[^]*(\n<!-- end of dialects -->)/;

/** Replaces the generated part of the page. Pure. */
export function withTables(page: string, rows: ReadonlyMap<DialectName, Row>): string {
  const tables = [describeSettings([...rows.keys()]), toMarkdown(rows)].join("\n\n");
  return page.replace(MARKED, (_, begin: string, end: string) => `${begin}\n${tables}\n${end}`);
}

function toTable([head = [], ...body]: readonly string[][]): string {
  return [head, head.map(() => "---"), ...body].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function toText(cell: Cell | undefined, noteOf: (note: string) => string): string {
  switch (cell?.kind) {
    case "answered":
      return "✓";
    case "explained":
      return noteOf(`${cell.sentence} (Because ${cell.because}.)`);
    case "absent":
      return noteOf(`Does not apply: ${cell.because}.`);
    case "failed":
    case undefined:
    default:
      return "**fails**";
  }
}
