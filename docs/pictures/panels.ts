import { marked } from "marked";

/** The messages of one platform at one moment. */
export interface Panel {
  platform: "slack" | "discord";
  title: string;
  messages: readonly { author: string; isBot: boolean; markdown: string; buttons: readonly string[] }[];
  /** Shown below the messages; empty for no note. */
  note: string;
}

const STYLE = `
  * { box-sizing: border-box; }
  body { margin: 0; display: flex; height: 100vh; font: 14px/1.45 "Liberation Sans", "DejaVu Sans", sans-serif; }
  section { flex: 1; min-width: 0; padding: 0 18px 14px; display: flex; flex-direction: column; }
  h1 { font-size: 14px; margin: 0 -18px 12px; padding: 11px 18px; }
  h1 small { float: right; font-weight: normal; opacity: 0.65; }
  article { display: grid; grid-template-columns: 34px 1fr; column-gap: 10px; margin-bottom: 12px; }
  i.face { width: 34px; height: 34px; font: bold 15px/34px sans-serif; text-align: center; color: #fff; background: #b0527a; }
  i.face.bot { background: #2f6f6a; }
  b.name { display: block; }
  b.name small { font-size: 10px; font-weight: bold; padding: 0 4px; border-radius: 3px; margin-left: 5px; }
  .text { grid-column: 2; min-width: 0; }
  p, ol, ul, pre { margin: 3px 0 6px; }
  ol, ul { padding-left: 22px; }
  pre { padding: 7px 9px; white-space: pre-wrap; overflow-wrap: anywhere; border-radius: 5px; }
  code { font: 12px/1.45 "DejaVu Sans Mono", monospace; }
  :not(pre) > code { padding: 1px 4px; border-radius: 3px; }
  button { font: inherit; font-size: 13px; padding: 3px 10px; margin: 3px 6px 0 0; border-radius: 5px; }
  .note { margin-top: auto; font-size: 12px; opacity: 0.75; min-height: 18px; }
  .slack { background: #fff; color: #1d1c1d; }
  .slack h1 { border-bottom: 1px solid #ddd; }
  .slack i.face { border-radius: 8px; }
  .slack b.name small { background: #e8e8e8; color: #616061; }
  .slack pre, .slack :not(pre) > code { background: #f6f6f6; border: 1px solid #ddd; }
  .slack button { background: #fff; border: 1px solid #bbb; color: #1d1c1d; }
  .discord { background: #313338; color: #dbdee1; }
  .discord h1 { border-bottom: 1px solid #232428; color: #f2f3f5; }
  .discord i.face { border-radius: 50%; }
  .discord b.name { color: #f2f3f5; }
  .discord b.name small { background: #5865f2; color: #fff; }
  .discord pre, .discord :not(pre) > code { background: #2b2d31; }
  .discord button { background: #4e5058; border: 0; color: #fff; }
`;

/** An SVG, because not every machine has a font with this sign. */
const THUMB =
  '<svg width="14" height="14" viewBox="0 0 16 16" fill="currentColor" style="vertical-align:-2px"><path d="M1 7h3v8H1zM5 7l3-6c2 0 2.300 1.500 1.800 3L9.400 6H14c1 0 1.200 1 1 1.800l-1.600 6c-.2.8-.7 1.200-1.500 1.200H5z"/></svg>';
const SIGNS: Readonly<Record<string, string>> = {
  "👍": THUMB,
  "👎": THUMB.replace('style="', 'style="transform:rotate(180deg);'),
};

const NAMES = { slack: "Slack", discord: "Discord" };

/** Returns a page with the panels side by side. */
export function toPage(panels: readonly Panel[]): string {
  return `<!doctype html><meta charset="utf-8"><style>${STYLE}</style>${panels.map(toSection).join("")}`;
}

function toSection({ platform, title, messages, note }: Panel): string {
  const articles = messages.map(({ author, isBot, markdown, buttons }) => {
    const badge = isBot ? "<small>APP</small>" : "";
    const row = buttons.map((label) => `<button>${SIGNS[label] ?? label}</button>`).join("");
    const text = marked.parse(markdown, { async: false, breaks: true });
    return `<article><i class="face ${isBot ? "bot" : ""}">${author[0]}</i><div class="text"><b class="name">${author}${badge}</b>${text}${row}</div></article>`;
  });
  const head = `<h1>${title}<small>simulated ${NAMES[platform]}</small></h1>`;
  return `<section class="${platform}">${head}${articles.join("")}<div class="note">${note}</div></section>`;
}
