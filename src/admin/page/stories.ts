import { html, nothing, type TemplateResult } from "lit-html";
import { describeCount, describeMoment, describeMs, describeReason, describeTime, isFine } from "./format.ts";
import { ask, describeFailure } from "./requests.ts";
import { placeOf } from "./view.ts";
import type { NamedStory, OpenedMessage, Trace } from "./wire.ts";

/** Details of a turn, loaded when an administrator opens them. */
export interface Opened {
  trace?: Trace | string;
  messages?: OpenedMessage[] | string;
}

/** Which stories of a list are open. */
export interface Unfolded {
  open: Set<string>;
  opened: Map<string, Opened>;
  changed(): void;
}

/** Returns a story that opens on a click: its steps, its last sentence to users and, on request, its messages. */
export function toStory(story: NamedStory, unfolded: Unfolded): TemplateResult {
  const { id, author, outcome = "", acceptedAt, model } = story;
  const isOpen = unfolded.open.has(id);
  const toggle = () => {
    if (!unfolded.open.delete(id)) {
      unfolded.open.add(id);
      void fetchTrace(story.turnId, unfolded);
    }
    unfolded.changed();
  };
  return html`
    <li class="story">
      <h2>
        <button class="fold" aria-expanded=${isOpen} aria-controls="story-${id}" @click=${toggle}>
          <span class="reason ${isFine(outcome) ? "ok" : "bad"}">${describeReason(story)}</span>
          <span>${author.name}</span>
          <span>${placeOf(story)}</span>
          <span class="hint">${model}</span>
          <time class="hint" datetime=${new Date(acceptedAt).toISOString()}>${describeMoment(acceptedAt)}</time>
        </button>
      </h2>
      <div id="story-${id}" ?hidden=${!isOpen}>${isOpen ? toDetails(story, unfolded) : nothing}</div>
    </li>
  `;
}

function toDetails(story: NamedStory, unfolded: Unfolded): TemplateResult {
  const { turnId, acceptedAt, steps } = story;
  const opened = unfolded.opened.get(turnId) ?? {};
  return html`
    <div class="story-body">
      <h3>Timeline</h3>
      <ol class="steps">
        ${steps.map(
          ({ at, what, isBad }) => html`
            <li class=${isBad ? "bad" : ""}>
              <time class="hint" datetime=${new Date(at).toISOString()}>${describeTime(at)}</time>
              <span class="hint offset">+${describeMs(Math.max(0, at - acceptedAt))}</span>
              <span>${what}</span>
            </li>`,
        )}
      </ol>
      <h3>What the user saw</h3>
      <p>${describeSeen(story)}</p>
      ${story.note === undefined ? nothing : html`<blockquote>${story.note.replaceAll("`", "")}</blockquote>`}
      ${toTrace(opened.trace)}
      ${toMessages(opened.messages, () => void fetchMessages(turnId, unfolded))}
      <p class="hint ids">Turn <code>${turnId}</code> · process <code>${story.process}</code></p>
    </div>
  `;
}

function describeSeen({
  shown,
  written,
  messages,
  longestLagMs,
  firstVisibleAt,
  acceptedAt,
  retries,
}: NamedStory): string {
  const first =
    firstVisibleAt === undefined
      ? "no text of the answer"
      : `the first text after ${describeMs(firstVisibleAt - acceptedAt)}`;
  const parts = [
    `They saw ${first}`,
    written > 0 && `${describeCount(Math.min(shown, written))} of ${describeCount(written)} characters`,
    messages > 0 && `in ${messages} ${messages === 1 ? "message" : "messages"}`,
    longestLagMs > 0 && `at most ${describeMs(longestLagMs)} behind the model`,
    retries > 0 && `after ${retries} ${retries === 1 ? "retry" : "retries"}`,
  ];
  return `${parts.filter(Boolean).join(", ")}.`;
}

function toTrace(trace: Opened["trace"]): TemplateResult {
  if (trace === undefined) return html`<p class="hint">Loading …</p>`;
  if (typeof trace === "string") return html`<p class="hint">${trace}</p>`;
  const { prompt, completion, estimated } = trace.tokens;
  const options = Object.entries(trace.options).map(([name, value]) => `${name} ${String(value)}`);
  const rows: Array<[string, string]> = [
    ["Model", [trace.model, ...options].join(", ")],
    ["Persona", trace.persona],
    [
      "Messages",
      `${trace.shown} shown${trace.withFiles > 0 ? `, ${trace.withFiles} with files` : ""}${trace.fromChannel > 0 ? `, and ${trace.fromChannel} from the channel` : ""}`,
    ],
    [
      "Left out",
      [trace.dropped > 0 ? `${trace.dropped} that did not fit` : "", trace.hasOlder ? "older ones" : ""]
        .filter(Boolean)
        .join(", ") || "nothing",
    ],
    [
      "Tokens",
      `${describeCount(prompt)} read, ${describeCount(completion)} written${estimated > 0 ? ", estimated" : ""}`,
    ],
    ...trace.calls.map(({ name, tookMs, state }): [string, string] => [
      "Tool",
      `${name}, ${state}${tookMs === undefined ? "" : ` after ${describeMs(tookMs)}`}`,
    ]),
    ...trace.notices.map((notice): [string, string] => ["Notice", notice]),
  ];
  return html`
    <h3>What the model saw</h3>
    <dl class="facts">${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
  `;
}

function toMessages(messages: Opened["messages"], open: () => void): TemplateResult {
  if (messages === undefined) {
    return html`
      <h3>Messages</h3>
      <p class="reveal">
        <button class="plain" @click=${open}>Open the messages</button>
        <span class="hint">This is recorded in the audit log.</span>
      </p>`;
  }
  if (typeof messages === "string") return html`<h3>Messages</h3><p class="hint">${messages}</p>`;
  return html`
    <h3>Messages</h3>
    <ol class="messages">
      ${messages.map(
        ({ at, author, text, files, wasShown }) => html`
          <li class=${wasShown ? "" : "unshown"}>
            <p><strong>${author ?? "The bot"}</strong> <time class="hint" datetime=${new Date(at).toISOString()}>${describeMoment(at)}</time>
              ${wasShown || author === null ? nothing : html`<span class="hint">not shown to the model</span>`}</p>
            <pre tabindex="0">${text || "(no text)"}</pre>
            ${files.length === 0 ? nothing : html`<p class="hint">Files: ${files.join(", ")}</p>`}
          </li>`,
      )}
    </ol>
  `;
}

async function fetchTrace(turnId: string, { opened, changed }: Unfolded): Promise<void> {
  const trace = await ask<Trace>(`turns/${turnId}/trace`).catch(describeFailure);
  opened.set(turnId, { ...opened.get(turnId), trace });
  changed();
}

async function fetchMessages(turnId: string, { opened, changed }: Unfolded): Promise<void> {
  const messages = await ask<OpenedMessage[]>(`turns/${turnId}/messages`, { method: "POST" }).catch(describeFailure);
  opened.set(turnId, { ...opened.get(turnId), messages });
  changed();
}
