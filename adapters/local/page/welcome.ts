import { html, type TemplateResult } from "lit-html";
import type { Actions } from "./actions.ts";
import { isChat, type Place, type State } from "./state.ts";

/** What stands where nobody has written yet. */
export function welcomeView(place: Place, state: State, actions: Actions): TemplateResult {
  const bot = state.hello?.botName ?? "";
  if (!isChat(state, place.channelId)) {
    return html`<div class="welcome">
      <h1>#${state.channels.get(place.channelId)?.title}</h1>
      <p>People talk here among themselves. Write <b>@${bot}</b> in a message, and the answer opens a thread under it.</p>
    </div>`;
  }
  return html`<div class="welcome">
    <img src="/assets/icon.svg" alt="" width="52" height="52" />
    <h1>Talk with ${bot}</h1>
    <p>
      The answer grows while the model writes it, and the conversation is remembered.<br />
      Write below, or begin with one of these.
    </p>
    <div class="examples">
      ${(state.hello?.examples ?? []).map(
        ({ label, prompt }) => html`<button type="button" @click=${() => actions.sendText(place, prompt)}>
          <b>${label}</b><span>${prompt}</span>
        </button>`,
      )}
    </div>
  </div>`;
}
