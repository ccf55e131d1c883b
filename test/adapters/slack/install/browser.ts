import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import type { Hono } from "hono";
import { onTestFinished } from "vitest";

/** A server for the install page, whose app can be created later. Its address is known before. */
export async function startServer() {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return {
    publicUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    serve(app: Hono) {
      const answer = getRequestListener(app.fetch, { overrideGlobalObjects: false });
      server.on("request", (request, response) => void answer(request, response));
    },
  };
}

/** A browser without cookies that installs the app of this service. */
export function createBrowser(publicUrl: string) {
  /** Opens the install page. */
  async function begin() {
    const page = await fetch(`${publicUrl}/slack/install`);
    const text = await page.text();
    const link = /href="([^"]+authorize[^"]+)"/.exec(text)?.[1]?.replaceAll("&amp;", "&") ?? "";
    const [cookie = ""] = page.headers.getSetCookie();
    return { page, text, link: new URL(link), setCookie: cookie, cookie: cookie.split(";")[0] ?? "" };
  }

  /** Agrees on Slack's page. Resolves to the URL to which Slack returns. */
  async function agree(link: URL): Promise<URL> {
    const answer = await fetch(link, { redirect: "manual" });
    return new URL(answer.headers.get("location") ?? "");
  }

  async function comeBack(url: URL, cookie: string) {
    const answer = await fetch(url, { headers: { cookie } });
    return { status: answer.status, text: await answer.text() };
  }

  async function install() {
    const { link, cookie } = await begin();
    return comeBack(await agree(link), cookie);
  }

  return { begin, agree, comeBack, install };
}
