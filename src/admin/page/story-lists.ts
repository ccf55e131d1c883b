import { html, render, type TemplateResult } from "lit-html";
import { repeat } from "lit-html/directives/repeat.js";
import { describeReason } from "./format.ts";
import { ask, follow } from "./requests.ts";
import { toStory, type Unfolded } from "./stories.ts";
import { empty, problem, type View } from "./view.ts";
import type { NamedStory } from "./wire.ts";

export const openConversations: View = (root) =>
  openStories(root, {
    path: "turns",
    title: "Conversations",
    end: "How it ended",
    about: "The latest 500 answers of all processes, with what the model saw for each of them.",
    nothing: "Nothing has been answered yet.",
  });

export const openFailures: View = (root) =>
  openStories(root, {
    path: "failures",
    title: "Failures",
    end: "Reason",
    about: "The latest 500 answers of all processes that went wrong, newest first.",
    nothing: "Nothing has failed.",
  });

interface StoriesOptions {
  path: string;
  title: string;
  /** Title of the outcome column and of its filter. */
  end: string;
  about: string;
  nothing: string;
}

function openStories(root: HTMLElement, options: StoriesOptions): () => void {
  let stories: NamedStory[] | undefined;
  let words = "";
  const given = new URLSearchParams(location.search);
  let reason = given.get("reason") ?? "";
  let wanted = given.get("find") ?? "";
  const unfolded: Unfolded = { open: new Set(), opened: new Map(), changed: show };

  function show(): void {
    const search = (event: InputEvent) => {
      wanted = (event.target as HTMLInputElement).value;
      show();
    };
    const choose = (event: Event) => {
      reason = (event.target as HTMLSelectElement).value;
      show();
    };
    const matching = (stories ?? []).filter((story) => isMeant(story, wanted.trim().toLowerCase()));
    const found = matching.filter((story) => reason === "" || describeReason(story) === reason);
    const list = html`
      <p class="story-head" aria-hidden="true"><span>${options.end}</span><span>Who</span><span>Where</span><span>Model</span><span>When</span></p>
      <ul class="stories">${repeat(
        found,
        ({ id }) => id,
        (story) => toStory(story, unfolded),
      )}</ul>`;
    const none = stories === undefined ? "Loading …" : stories.length === 0 ? options.nothing : "No answer matches.";
    const page = html`
      <div class="head"><h1>${options.title}</h1></div>
      <p class="hint about">${options.about}</p>
      <div class="filters">
        <label><span>${options.end}</span><select @change=${choose}>${toChoices(matching, reason)}</select></label>
        <label><span>Find</span>
          <input type="search" placeholder="name, channel, model, id" .value=${wanted} @input=${search} /></label>
      </div>
      ${words === "" ? "" : problem(words)}
      ${found.length === 0 ? empty(none) : list}
    `;
    render(page, root);
  }

  show();
  const { end } = follow(
    () => options.path,
    ask<NamedStory[]>,
    (found, problem) => {
      stories = found ?? stories;
      words = problem;
      show();
    },
  );
  return end;
}

/** Lists the reasons in these stories, the most frequent first. Always includes the chosen reason. */
function toChoices(stories: readonly NamedStory[], chosen: string): TemplateResult[] {
  const counts = new Map([...Map.groupBy(stories, describeReason)].map(([reason, { length }]) => [reason, length]));
  if (chosen !== "" && !counts.has(chosen)) counts.set(chosen, 0);
  const reasons = [...counts].toSorted(([, one], [, other]) => other - one);
  return [["", stories.length] as const, ...reasons].map(
    ([reason, count]) =>
      html`<option value=${reason} .selected=${reason === chosen}>${reason || "All"} (${count})</option>`,
  );
}

function isMeant(story: NamedStory, wanted: string): boolean {
  const { author, place, reply, model, outcome, turnId, conversationId } = story;
  const texts = [author.name, author.id, place, reply.channelId, model, outcome, turnId, conversationId, story.note];
  return wanted === "" || texts.some((text) => text?.toLowerCase().includes(wanted));
}
