import { html, nothing, type TemplateResult } from "lit-html";
import { getJson } from "./requests.ts";
import type { State, Store } from "./state.ts";

/** Makes the function that keeps the model of the open place known: `/model` changes it, and every place has its own. */
export function createModelReader({ change }: Store): (state: State) => void {
  let asked = "";
  return ({ view: { channelId }, speakerId, messages, isReady, isConnected }) => {
    if (!isReady || !isConnected) return;
    const newest = [...messages.values()].findLast(
      (each) => each.channelId === channelId && each.authorId === null,
    )?.id;
    const question = new URLSearchParams({ channelId, authorId: speakerId }).toString();
    if (asked === `${question} ${newest}`) return;
    asked = `${question} ${newest}`;
    const note = ({ model }: { model: string | null }) => change((state) => void state.models.set(channelId, model));
    // It is asked again after the next answer; until then the last one known stands there.
    getJson(`/local/model?${question}`).then(
      (answer) => note(answer as { model: string | null }),
      () => undefined,
    );
  };
}

/** The model that answers at the open place, where it runs, and its trouble if it has any. */
export function answeringView({ view, models, hello, isConnected, gateway }: State): TemplateResult | typeof nothing {
  const model = models.get(view.channelId);
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
      ? ["sandbox", `${model} answers here. It is the sandbox inside Palaver, and no real model.`]
      : ["gateway", `${model} answers here, and the gateway is well.`];
  }
}
