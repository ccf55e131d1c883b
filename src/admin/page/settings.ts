import { html, nothing, render } from "lit-html";
import { ask, describeFailure } from "./requests.ts";
import { empty, problem, type View } from "./view.ts";
import type { SettingsPart } from "./wire.ts";

export const openSettings: View = (root) => {
  const show = (content: unknown) =>
    render(
      html`
        <div class="head"><h1>Settings</h1></div>
        <p class="hint about">The current settings. Change them in the configuration, or with commands in the channels.</p>
        ${content}
      `,
      root,
    );
  show(empty("Loading …"));
  ask<SettingsPart[]>("settings").then(
    (parts) => show(parts.map(toPart)),
    (error: unknown) => show(problem(describeFailure(error))),
  );
  return () => {};
};

function toPart({ title, about, rows }: SettingsPart) {
  const list = html`<dl class="facts">${rows.map(({ name, value }) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
  return html`
    <section>
      <h2>${title}</h2>
      ${about === undefined ? nothing : html`<p class="hint">${about}</p>`}
      ${rows.length === 0 ? nothing : list}
    </section>
  `;
}
