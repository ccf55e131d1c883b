import { html } from "hono/html";

type Page = ReturnType<typeof html>;

export function toInstallPage(authorizeUrl: string): Page {
  return page(
    "Add to Slack",
    html`<p>Slack will show you what the bot may do, and ask you to agree.</p>
    <p><a href="${authorizeUrl}">Add to Slack</a></p>`,
  );
}

export function toDonePage(teamName: string, openUrl: string): Page {
  return page(
    "It is installed",
    html`<p>The bot is in ${teamName === "" ? "your workspace" : teamName}. Mention it in a
      channel, or write to it directly.</p>
    <p><a href="${openUrl}">Open Slack</a></p>`,
  );
}

export function toFailurePage(sentence: string, installUrl: string): Page {
  return page(
    "It is not installed",
    html`<p>${sentence}</p>
    <p><a href="${installUrl}">Begin again</a></p>`,
  );
}

function page(title: string, body: Page): Page {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width" />
        <title>${title}</title>
      </head>
      <body>
        <h1>${title}</h1>
        ${body}
      </body>
    </html>`;
}
