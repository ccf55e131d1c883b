/** Blocks of Markdown that are hard to show well: code, tables, Japanese. */

interface Language {
  fence: string;
  /** One function; `index` makes each of several its own. */
  write: (index: number) => string;
}

const LANGUAGES: Readonly<Record<string, Language>> = {
  python: {
    fence: "python",
    write: (index) =>
      `def tide_${index}(hours: list[float]) -> float:\n    """Mean height of tide ${index}, in metres."""\n    total = 0.0\n    for hour in hours:\n        total += hour * ${index + 1} / 12\n    return total / len(hours)\n`,
  },
  typescript: {
    fence: "ts",
    write: (index) =>
      `export function tide${index}(hours: readonly number[]): number {\n  // Mean height of tide ${index}, in metres.\n  const total = hours.reduce((sum, hour) => sum + (hour * ${index + 1}) / 12, 0);\n  return total / hours.length;\n}\n`,
  },
  sql: {
    fence: "sql",
    write: (index) =>
      `SELECT harbour, avg(height) AS tide_${index}\nFROM tides\nWHERE day = ${index + 1}\nGROUP BY harbour\nORDER BY 2 DESC;\n`,
  },
  shell: {
    fence: "sh",
    write: (index) => `# Day ${index + 1}\ngrep -c "high tide" day-${index + 1}.log | sort -n > "tide-${index}.txt"\n`,
  },
};

const ALIASES: readonly [RegExp, string][] = [
  [/\bpython\b/i, "python"],
  [/\bsql\b/i, "sql"],
  [/\b(?:shell|bash)\b/i, "shell"],
  [/\b(?:typescript|javascript|ts|js)\b/i, "typescript"],
];

const MAX_LINES = 5000;

const HARBOURS = ["Lerwick", "Yokohama", "Valparaíso", "Tromsø", "Mombasa", "長崎"];

/** Answers "code in python", "200 lines of code", "a table", "a table of 30 rows"; undefined for other words. */
export function answerWithSample(text: string): string | undefined {
  const wantsCode = /\bcode\b|コード/i.test(text) || /\bin (?:python|sql|bash|typescript|javascript)\b/i.test(text);
  const wantsTable = /\btable\b|表を|の表/i.test(text);
  if (!wantsCode && !wantsTable) return undefined;
  const code = wantsCode ? [`Here is some ${languageOf(text).fence} code:`, writeCode(text)] : [];
  const table = wantsTable ? ["Here is a table:", writeTable(readNumber(text, "rows") ?? HARBOURS.length)] : [];
  return [...code, ...table].join("\n\n");
}

/** A fenced block in the language the words name (TypeScript else), about as long as they ask. */
export function writeCode(text: string): string {
  const { fence, write } = languageOf(text);
  const lines = Math.min(readNumber(text, "lines") ?? 12, MAX_LINES);
  const functions: string[] = [];
  for (let count = 0; count < lines; ) {
    const next = write(functions.length);
    functions.push(next);
    count += next.split("\n").length;
  }
  return `\`\`\`${fence}\n${functions.join("\n")}\`\`\``;
}

export function writeTable(rows: number): string {
  const body = Array.from({ length: Math.min(rows, MAX_LINES) }, (_, index) => {
    const harbour = HARBOURS[index % HARBOURS.length] ?? "";
    return `| ${index + 1} | ${harbour} | ${((index * 7) % 50) / 10} m | ${index % 2 === 0 ? "rising" : "**falling**"} |`;
  });
  return ["| # | Harbour | Tide | Direction |", "|--:|:--|--:|:--|", ...body].join("\n");
}

function languageOf(text: string): Language {
  const name = ALIASES.find(([pattern]) => pattern.test(text))?.[1] ?? "typescript";
  return LANGUAGES[name] as Language;
}

function readNumber(text: string, unit: "lines" | "rows"): number | undefined {
  const digits = new RegExp(`\\b([\\d,]{1,7}) ${unit}\\b`, "i").exec(text)?.[1];
  return digits === undefined ? undefined : Math.max(1, Number(digits.replaceAll(",", "")));
}
