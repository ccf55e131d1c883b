import { type Cell, CONVERSATION_NAMES, CONVERSATIONS, type ConversationName, type Row } from "./contract.ts";
import type { Dialect } from "./dialect.ts";
import { DIALECTS, type DialectName } from "./dialects/index.ts";

/** One row per vendor: its settings and, if the bot could only explain, the number of the sentence that users read. */
function toMarkdown(rows: ReadonlyMap<DialectName, Row>): string {
  const notes: string[] = [];
  /** Sentences that differ only in the model's name have the same number. */
  const numberOf = (sentence: string, { chatModel }: Dialect) => {
    const note = sentence.replaceAll(chatModel, "…");
    if (!notes.includes(note)) notes.push(note);
    return notes.indexOf(note) + 1;
  };
  const body = [...rows].map(([name, row]) => {
    const dialect: Dialect = DIALECTS[name];
    const { title, address, chatModel, imageModel } = dialect;
    const exceptions = CONVERSATION_NAMES.flatMap((conversation) =>
      toExceptions(conversation, row.get(conversation), dialect, (sentence) => numberOf(sentence, dialect)),
    );
    const code = (text: string | undefined) => (text === undefined ? "" : `\`${text}\``);
    return [title, code(address), code(chatModel), code(imageModel), [...new Set(exceptions)].join(", ")];
  });
  const head = ["", "`GATEWAY_BASE_URL`", "`CHAT_MODEL`", "`IMAGE_MODEL`", "sentences"];
  return [toTable([head, ...body]), notes.map((note, index) => `${index + 1}. ${note}`).join("\n")].join("\n\n");
}

const IMAGES: ReadonlySet<ConversationName> = new Set(["picture out", "picture changed"]);

const MARKED = /(<!-- dialects -->\n)[^]*(\n<!-- end of dialects -->)/;

/** Replaces the generated tables of the page. Pure. */
export function withTables(page: string, rows: ReadonlyMap<DialectName, Row>): string {
  return page.replace(MARKED, (_, begin: string, end: string) => `${begin}\n${toMarkdown(rows)}\n${end}`);
}

function toTable([head = [], ...body]: readonly string[][]): string {
  return [head, head.map(() => "---"), ...body].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function toExceptions(
  conversation: ConversationName,
  cell: Cell | undefined,
  { imageModel }: Dialect,
  numberOf: (sentence: string) => number,
): string[] {
  switch (cell?.kind) {
    case "answered":
    case "absent":
      return [];
    case "explained": {
      // The table omits two kinds of sentences: a gateway that fails on purpose says nothing about its vendor, and
      // another column already shows that there is no image model.
      const isKnown = "explained" in CONVERSATIONS[conversation];
      const hasNoImages = imageModel === undefined && IMAGES.has(conversation);
      return isKnown || hasNoImages ? [] : [String(numberOf(cell.sentence))];
    }
    case "failed":
    case undefined:
    default:
      return [`**${conversation} fails**`];
  }
}
