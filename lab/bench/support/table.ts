/** Formats a plain text table. The first column contains words and is aligned left; the others are aligned right. */
export function formatTable(head: readonly string[], rows: ReadonlyArray<readonly string[]>): string {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((line) => line[column]?.length ?? 0)));
  const rule = widths.map((width) => "-".repeat(width));
  return [head, rule, ...rows].map((line) => formatLine(widths, line)).join("\n");
}

function formatLine(widths: readonly number[], line: readonly string[]): string {
  const cells = widths.map((width, column) => {
    const text = line[column] ?? "";
    return column === 0 ? text.padEnd(width) : text.padStart(width);
  });
  return cells.join("  ").trimEnd();
}
