import { html, nothing, render, type TemplateResult } from "lit-html";
import { openDoctor } from "./doctor.ts";
import { openOverview } from "./overview.ts";
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

const OVERVIEW: Page = { name: "overview", title: "Overview", open: openOverview };
const PAGES: readonly Page[] = [
  OVERVIEW,
  { name: "failures", title: "Failures", open: openFailures },
  { name: "conversations", title: "Conversations", open: openConversations },
  { name: "trends", title: "Trends", open: openTrends },
  { name: "doctor", title: "Doctor", open: openDoctor },
  { name: "settings", title: "Settings", open: openSettings },
];

const app = document.querySelector<HTMLElement>("#app");
if (app === null) throw new Error("The page has no element for the dashboard.");
const root = app;
let closePage = () => {};

function pageOf(path: string): Page {
  return PAGES.find(({ name }) => path === `/admin/${name}`) ?? OVERVIEW;
}

function showFrame(me: Me): void {
  const current = pageOf(location.pathname);
  const link = ({ name, title }: Page) => {
    const isCurrent = name === current.name;
    return html`<a href="/admin/${name}" aria-current=${isCurrent ? "page" : nothing}>${title}</a>`;
  };
  const out = me.canSignOut ? html`<button class="quiet" @click=${() => void signOut()}>Sign out</button>` : nothing;
  const frame = html`
    <header class="top">
      <a class="brand" href="/admin/overview">Palaver <span class="hint">dashboard</span></a>
      <nav aria-label="Pages">${PAGES.map(link)}</nav>
      <div class="who"><span class="hint">${me.name}</span>${out}</div>
    </header>
    <main id="page" tabindex="-1"></main>
  `;
  render(frame, root);
  // The navigation scrolls on a narrow screen: make the current page's link visible.
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
  // Tells a screen reader that the page has changed.
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
  const refusal = html`<p>Administrators sign in through the proxy: open this page there.</p>`;
  render(html`<main class="entry"><h1>Palaver dashboard</h1>${hasPassword ? form() : refusal}</main>`, root);
}

let signedIn: Me | undefined;

function start(me: Me): void {
  signedIn = me.name === null ? undefined : me;
  if (signedIn === undefined) showEntry(me);
  else showPage(signedIn);
}

function followLink(event: MouseEvent): void {
  const link = event.target instanceof Element ? event.target.closest<HTMLAnchorElement>("a[href^='/admin/']") : null;
  const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey;
  if (link === null || signedIn === undefined || !isPlain) return;
  event.preventDefault();
  history.pushState(null, "", link.href);
  showPage(signedIn, true);
}

root.addEventListener("click", followLink);
addEventListener("popstate", () => {
  if (signedIn !== undefined) showPage(signedIn, true);
});
whenSignedOut(() => void readMe().then(start));
start(await readMe());
