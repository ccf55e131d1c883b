import { html, type TemplateResult } from "lit-html";

/** Shows a page in an element, until the function that it returns is called. */
export type View = (root: HTMLElement) => () => void;

/** Says something to people who do not see where it happens. */
export function announce(text: string): void {
  const place = document.querySelector("#announcements");
  if (place !== null) place.textContent = text;
}

/** A sentence where there is nothing to show. */
export function empty(words: string): TemplateResult {
  return html`<p class="empty">${words}</p>`;
}

export function problem(words: string): TemplateResult {
  return html`<p class="problem" role="alert">${words}</p>`;
}

export interface Column<T> {
  title: string;
  /** Numbers stand to the right. */
  isNumber?: boolean;
  cell(row: T): unknown;
}

/** On a narrow screen each row is a card, in which every cell has its title beside it. */
export function table<T>(caption: string, columns: ReadonlyArray<Column<T>>, rows: readonly T[]): TemplateResult {
  const cell = (row: T, { title, isNumber, cell }: Column<T>) =>
    html`<td data-title=${title} class=${isNumber ? "number" : ""}>${cell(row)}</td>`;
  return html`
    <table>
      <caption class="unseen">${caption}</caption>
      <thead><tr>${columns.map(({ title, isNumber }) => html`<th scope="col" class=${isNumber ? "number" : ""}>${title}</th>`)}</tr></thead>
      <tbody>${rows.map((row) => html`<tr>${columns.map((column) => cell(row, column))}</tr>`)}</tbody>
    </table>
  `;
}
