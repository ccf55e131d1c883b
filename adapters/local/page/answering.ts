import { html, nothing, type TemplateResult } from "lit-html";
import { getJson } from "./requests.ts";
import type { State, Store } from "./state.ts";

/** Keeps the shown model up to date: each chat has its own model, and `/model` changes it. */
export function createModelReader({ change }: Store): (state: State) => void {
  let asked = "";
  return ({ chatId, messages, isReady, isConnected }) => {
    // The next answer can come from another process with another model.
    if (!isConnected) asked = "";
    if (!isReady || !isConnected) return;
    const newest = [...messages.values()].findLast((each) => each.chatId === chatId && each.isBot)?.id;
    const question = new URLSearchParams({ chatId }).toString();
    if (asked === `${question} ${newest}`) return;
    asked = `${question} ${newest}`;
    const note = ({ model }: { model: string | null }) => change((state) => void state.models.set(chatId, model));
    // If the request fails, the page shows the last known model and asks again after the next answer.
    getJson(`/local/model?${question}`).then(
      (answer) => note(answer as { model: string | null }),
      () => undefined,
    );
  };
}

/** Undefined if the model is unknown, or if the sandbox answers. */
export function readAnswering({ chatId, models, hello, isConnected, gateway }: State): string | undefined {
  if (hello === undefined || hello.isSandbox || !isConnected || gateway !== null) return undefined;
  return models.get(chatId) ?? undefined;
}

export function answeringView({ chatId, models, hello, isConnected, gateway }: State): TemplateResult | typeof nothing {
  const model = models.get(chatId);
  if (!model || hello === undefined) return nothing;
  const isWell = isConnected && gateway === null;
  const [state, sentence] = describe();
  return html`<span class="answering ${isWell ? "on" : "off"}" title=${sentence}>
    <bdi>${model}</bdi><small>${state}</small>
  </span>`;

  function describe(): [state: string, sentence: string] {
    if (!isConnected) return ["not connected", "This page is not connected to Palaver."];
    if (gateway !== null) return [gateway.state, gateway.sentence];
    return hello?.isSandbox === true
      ? ["sandbox", `${model} answers here. It is the sandbox inside Palaver, not a real model.`]
      : ["gateway", `${model} answers here, and the gateway works.`];
  }
}
