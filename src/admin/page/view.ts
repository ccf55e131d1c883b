import { html, type TemplateResult } from "lit-html";
import type { NamedStory } from "./wire.ts";

/** Shows a page in `root`. The returned function removes the page. */
export type View = (root: HTMLElement) => () => void;

/** Announces a text to people who use a screen reader. */
export function announce(text: string): void {
  const place = document.querySelector("#announcements");
  if (place !== null) place.textContent = text;
}

export function empty(words: string): TemplateResult {
  return html`<p class="empty">${words}</p>`;
}

export function problem(words: string): TemplateResult {
  return html`<p class="problem" role="alert">${words}</p>`;
}

/** Returns a channel's name, with its ids as a tooltip. */
export function placeOf({ place, reply: { platform, workspaceId, channelId } }: NamedStory): TemplateResult {
  return html`<span title=${[platform, workspaceId, channelId].filter(Boolean).join(" · ")}>${place}</span>`;
}

export interface Column<T> {
  title: string;
  isNumber?: boolean;
  /** True if the column is hidden on a narrow screen, so that the other columns fit. */
  isMinor?: boolean;
  cell(row: T): unknown;
}

/** Returns a table. On a narrow screen, it hides minor columns or, if it has none, turns each row into a card. */
export function table<T>(caption: string, columns: ReadonlyArray<Column<T>>, rows: readonly T[]): TemplateResult {
  const kindOf = ({ isNumber, isMinor }: Column<T>) => `${isNumber ? "number" : ""} ${isMinor ? "minor" : ""}`;
  const cell = (row: T, column: Column<T>) =>
    html`<td data-title=${column.title} class=${kindOf(column)}>${column.cell(row)}</td>`;
  return html`
    <table class=${columns.length < 3 || columns.some(({ isMinor }) => isMinor) ? "" : "cards"}>
      <caption class="unseen">${caption}</caption>
      <thead><tr>${columns.map((column) => html`<th scope="col" class=${kindOf(column)}>${column.title}</th>`)}</tr></thead>
      <tbody>${rows.map((row) => html`<tr>${columns.map((column) => cell(row, column))}</tr>`)}</tbody>
    </table>
  `;
}
