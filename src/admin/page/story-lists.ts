import { html, render } from "lit-html";
import { repeat } from "lit-html/directives/repeat.js";
import { ask, follow } from "./requests.ts";
import { toStory, type Unfolded } from "./stories.ts";
import { empty, problem, type View } from "./view.ts";
import type { Story } from "./wire.ts";

/** The latest answers, each with the context that the model was given. */
export const openConversations: View = (root) =>
  openStories(root, {
    path: "turns",
    title: "Conversations",
    about: "The latest 500 answers of all processes, and what the model was given for each of them.",
    nothing: "Nothing has been answered yet.",
    showsSight: true,
  });

/** The answers that did not end well. */
export const openFailures: View = (root) =>
  openStories(root, {
    path: "failures",
    title: "Failures",
    about: "Answers that did not end as they should, of all processes, newest first. The newest 500 are kept.",
    nothing: "Nothing has failed.",
    showsSight: false,
  });

interface StoriesOptions {
  path: string;
  title: string;
  about: string;
  nothing: string;
  /** The context that the model was given stands first. */
  showsSight: boolean;
}

/** A list of stories that follows what happens. */
function openStories(root: HTMLElement, options: StoriesOptions): () => void {
  let stories: Story[] | undefined;
  let words = "";
  let wanted = "";
  const unfolded: Unfolded = { open: new Set(), opened: new Map(), changed: show };

  function show(): void {
    const search = (event: InputEvent) => {
      wanted = (event.target as HTMLInputElement).value.trim().toLowerCase();
      show();
    };
    const found = (stories ?? []).filter((story) => isMeant(story, wanted));
    const list = html`<ul class="stories">${repeat(
      found,
      ({ id }) => id,
      (story) => toStory(story, unfolded, options.showsSight),
    )}</ul>`;
    const none = stories === undefined ? "Looking …" : stories.length === 0 ? options.nothing : "None is like that.";
    const page = html`
      <div class="head"><h1>${options.title}</h1></div>
      <p class="hint about">${options.about}</p>
      <label class="search"><span>Find</span>
        <input type="search" placeholder="name, channel, model, outcome, id" @input=${search} /></label>
      ${words === "" ? "" : problem(words)}
      ${found.length === 0 ? empty(none) : list}
    `;
    render(page, root);
  }

  show();
  const { end } = follow(
    () => options.path,
    ask<Story[]>,
    (found, problem) => {
      stories = found ?? stories;
      words = problem;
      show();
    },
  );
  return end;
}

function isMeant({ author, reply, model, outcome, turnId, conversationId, note }: Story, wanted: string): boolean {
  const texts = [author.name, reply.platform, reply.channelId, model, outcome, turnId, conversationId, note];
  return wanted === "" || texts.some((text) => text?.toLowerCase().includes(wanted));
}
