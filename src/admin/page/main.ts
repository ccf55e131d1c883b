import { html, nothing, render, type TemplateResult } from "lit-html";
import { openDoctor } from "./doctor.ts";
import { openNow } from "./now.ts";
import { describeFailure, readMe, signIn, signOut, whenSignedOut } from "./requests.ts";
import { openSettings } from "./settings.ts";
import { openConversations, openFailures } from "./story-lists.ts";
import { openTrends } from "./trends.ts";
import type { View } from "./view.ts";
import type { Me } from "./wire.ts";

interface Page {
  name: string;
  title: string;
  open: View;
}

const NOW: Page = { name: "now", title: "Now", open: openNow };
const PAGES: readonly Page[] = [
  NOW,
  { name: "trends", title: "Trends", open: openTrends },
  { name: "failures", title: "Failures", open: openFailures },
  { name: "conversations", title: "Conversations", open: openConversations },
  { name: "doctor", title: "Doctor", open: openDoctor },
  { name: "settings", title: "Settings", open: openSettings },
];

const app = document.querySelector<HTMLElement>("#app");
if (app === null) throw new Error("The page has no place for the dashboard.");
const root = app;
let closePage = () => {};

function pageOf(path: string): Page {
  return PAGES.find(({ name }) => path === `/admin/${name}`) ?? NOW;
}

function showFrame(me: Me): void {
  const current = pageOf(location.pathname);
  const link = ({ name, title }: Page) => {
    const isCurrent = name === current.name;
    return html`<a href="/admin/${name}" aria-current=${isCurrent ? "page" : nothing} @click=${follow}>${title}</a>`;
  };
  const follow = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    history.pushState(null, "", (event.currentTarget as HTMLAnchorElement).href);
    showPage(me, true);
  };
  const out = me.canSignOut ? html`<button class="quiet" @click=${() => void signOut()}>Sign out</button>` : nothing;
  const frame = html`
    <header class="top">
      <a class="brand" href="/admin/now" @click=${follow}>Palaver <span class="hint">dashboard</span></a>
      <nav aria-label="Pages">${PAGES.map(link)}</nav>
      <div class="who"><span class="hint">${me.name}</span>${out}</div>
    </header>
    <main id="page" tabindex="-1"></main>
  `;
  render(frame, root);
  // On a narrow screen the pages do not all fit beside each other.
  root.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
}

function showPage(me: Me, isFollowed = false): void {
  closePage();
  const page = pageOf(location.pathname);
  document.title = `${page.title} · Palaver dashboard`;
  showFrame(me);
  const main = root.querySelector<HTMLElement>("#page");
  if (main === null) return;
  render(nothing, main);
  closePage = page.open(main);
  // A screen reader has to say that the page has changed.
  if (isFollowed) main.focus();
}

function showEntry({ hasPassword }: Me, problem = ""): void {
  closePage();
  closePage = () => {};
  document.title = "Sign in · Palaver dashboard";
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const field = (event.currentTarget as HTMLFormElement).elements.namedItem("password") as HTMLInputElement;
    try {
      start(await signIn(field.value));
    } catch (error) {
      showEntry({ name: null, csrfToken: "", canSignOut: false, hasPassword }, describeFailure(error));
      root.querySelector<HTMLInputElement>("input")?.select();
    }
  };
  const form = (): TemplateResult => html`
    <form @submit=${submit}>
      <label for="password">Password</label>
      <input id="password" name="password" type="password" autocomplete="current-password" required autofocus
        aria-describedby="entry-problem" aria-invalid=${problem === "" ? nothing : "true"} />
      <p id="entry-problem" class="problem" role="alert">${problem}</p>
      <button class="primary">Sign in</button>
    </form>
  `;
  const refusal = html`<p>Only the proxy in front of this service lets administrators in: open this page through it.</p>`;
  render(html`<main class="entry"><h1>Palaver dashboard</h1>${hasPassword ? form() : refusal}</main>`, root);
}

function start(me: Me): void {
  if (me.name === null) showEntry(me);
  else showPage(me);
  onpopstate = () => (me.name === null ? undefined : showPage(me, true));
}

whenSignedOut(() => void readMe().then(start));
start(await readMe());
