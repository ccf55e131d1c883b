import { html, type SVGTemplateResult, svg, type TemplateResult } from "lit-html";

function icon(shapes: SVGTemplateResult): TemplateResult {
  return html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">${shapes}</svg>`;
}

function stroke(path: string): TemplateResult {
  return icon(svg`<path d=${path} />`);
}

export const ICONS = {
  plus: stroke("M12 5v14M5 12h14"),
  send: stroke("M12 19V5m-6 6 6-6 6 6"),
  stop: icon(svg`<rect x="7" y="7" width="10" height="10" rx="2" fill="currentColor" stroke="none" />`),
  pause: stroke("M9 6v12M15 6v12"),
  continue: stroke("M5 12h14m-6-6 6 6-6 6"),
  retry: stroke("M4 12a8 8 0 1 0 2.6-5.9M4 4v4.5h4.5"),
  attach: stroke(
    "m20 11.5-8.2 8.2a5 5 0 0 1-7.1-7.1l8.5-8.5a3.3 3.3 0 0 1 4.7 4.7l-8.5 8.5a1.7 1.7 0 0 1-2.4-2.4l7.8-7.8",
  ),
  more: icon(
    svg`<g fill="currentColor" stroke="none"><circle cx="5" cy="12" r="2" /><circle cx="12" cy="12" r="2" /><circle cx="19" cy="12" r="2" /></g>`,
  ),
  close: stroke("M6 6l12 12M18 6 6 18"),
  check: stroke("M5 12.5l4.5 4.5L19 7.5"),
  checks: stroke("M2.5 12.5 7 17l9.5-9.5M11.5 16l1 1L22 7.5"),
  menu: stroke("M4 7h16M4 12h16M4 17h16"),
  search: stroke("M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14Zm5-2 4 4"),
  edit: stroke("M4 20l.9-4L16 4.9a2.1 2.1 0 0 1 3 3L8 19.1 4 20Z"),
  trash: stroke("M5 7h14M10 7V4.5h4V7m-7.5 0 .8 12.5h9.4L17.5 7M10 11v5m4-5v5"),
  copy: stroke("M9 9h10v11H9zM5 15V4h10"),
  down: stroke("M12 5v14m-6-6 6 6 6-6"),
  back: stroke("M15 5l-7 7 7 7"),
  forward: stroke("M9 5l7 7-7 7"),
  person: stroke("M12 11.5a3.8 3.8 0 1 0 0-7.6 3.8 3.8 0 0 0 0 7.6ZM4.5 20c.8-3.6 3.9-5.5 7.5-5.5s6.7 1.9 7.5 5.5"),
  picture: stroke("M4 5h16v14H4zM4 16l4.5-4.5 4 4 3-3L20 17M15.5 9.5h.01"),
  vary: stroke(
    "M4 8h3.5c4.5 0 4.5 8 9 8H20m-3-3 3 3-3 3M4 16h3.5c1.4 0 2.4-.8 3.2-1.9M13.3 9.9c.8-1.1 1.8-1.9 3.2-1.9H20m-3-3 3 3-3 3",
  ),
  enlarge: stroke("M14 4h6v6m0-6-7 7M10 20H4v-6m0 6 7-7"),
  good: stroke("M7 20V10l4-7a2.3 2.3 0 0 1 2.3 2.3V9h5.2a2 2 0 0 1 2 2.3l-1.2 7A2 2 0 0 1 17.3 20ZM7 10H3.5v10H7"),
  bad: stroke("M17 4v10l-4 7a2.3 2.3 0 0 1-2.3-2.3V15H5.5a2 2 0 0 1-2-2.3l1.2-7A2 2 0 0 1 6.7 4ZM17 14h3.5V4H17"),
  eye: stroke("M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12ZM12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6Z"),
  save: stroke("M12 4v11m-5-5 5 5 5-5M5 20h14"),
  file: stroke("M7 3h7l5 5v13H7zM14 3v5h5"),
  auto: icon(svg`<circle cx="12" cy="12" r="8" /><path d="M12 4a8 8 0 0 1 0 16Z" fill="currentColor" />`),
  light: stroke(
    "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM12 2v2m0 16v2M2 12h2m16 0h2M5 5l1.4 1.4m11.2 11.2L19 19M5 19l1.4-1.4M17.6 6.4 19 5",
  ),
  dark: stroke("M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5Z"),
} as const;
