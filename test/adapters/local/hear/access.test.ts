import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, test } from "vitest";
import { recordingLog } from "../../../../lab/support/log.ts";
import { type LocalPage, type LocalPageOptions, startLocalPage } from "../../../support/local-page.ts";

describe("access to the local page", () => {
  let page: LocalPage | undefined;

  async function start(options: LocalPageOptions = {}): Promise<LocalPage> {
    page = await startLocalPage(options);
    return page;
  }

  afterEach(async () => {
    await page?.close();
    page = undefined;
  });

  test.for(["localhost:3000", "127.0.0.1", "127.1.2.3:80", "[::1]:3000", "bot.localhost", "LOCALHOST"])(
    "the page opens under the machine's own name %s",
    async (host) => expect(await get(await start(), "/", { Host: host })).toMatchObject({ status: 200 }),
  );

  test.for(["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "[::2]", "127.0.0.1.nip.io"])(
    "the page refuses the foreign name %s, as DNS rebinding would use it",
    async (host) => {
      const answer = await get(await start(), "/", { Host: host });
      expect(answer.status).toBe(403);
      expect(JSON.parse(answer.body).error).toContain("PUBLIC_URL");
    },
  );

  test("the page opens under an allowed name, on any port unless one is given", async () => {
    const { url } = await start({ allowedHosts: ["chat.example", "exact.example:8443"] });
    const statuses = ["chat.example", "Chat.Example:8080", "exact.example:8443", "exact.example:1"].map(
      async (Host) => (await get({ url }, "/", { Host })).status,
    );
    expect(await Promise.all(statuses)).toEqual([200, 200, 200, 403]);
  });

  test("the access check covers every path of the page", async () => {
    const { url } = await start();
    for (const path of ["/", "/assets/main.ts", "/local/events", "/local/files/x"]) {
      expect((await get({ url }, path, { Host: "evil.example" })).status).toBe(403);
    }
  });

  test.for([
    ["another site", { Origin: "https://evil.example" }],
    ["another port of this machine", { Origin: "http://127.0.0.1:1" }],
    ["a page without an origin", { Origin: "null" }],
  ] as const)("the page refuses a change that %s requests", async ([, headers]) => {
    const { post, events } = await start();
    const response = await post("/local/messages", {}, headers);
    expect(response.status).toBe(403);
    expect(await response.json()).toEqual({
      error: "This request did not come from the page itself, so it was refused.",
    });
    expect(events).toEqual([]);
  });

  test("the page refuses a change without an origin", async () => {
    const { url } = await start();
    expect((await fetch(`${url}/local/people`, { method: "POST", body: "{}" })).status).toBe(403);
  });

  test("every path requires the password, and accepts any user name with it", async () => {
    const { url } = await start({ password: "pass:wörd" });
    for (const path of ["/", "/assets/main.ts", "/local/events", "/local/files/x"]) {
      const response = await fetch(url + path);
      expect(response.status).toBe(401);
      expect(response.headers.get("www-authenticate")).toContain("Basic");
      await response.body?.cancel();
    }
    const status = async (credentials: string) =>
      (await fetch(url, { headers: { Authorization: `Basic ${Buffer.from(credentials).toString("base64")}` } })).status;
    expect(await status("anybody:pass:wörd")).toBe(200);
    expect(await status("anybody:pass")).toBe(401);
    expect(await status("anybody:")).toBe(401);
  });

  test("the page answers a wrong password with JSON that does not contain the password", async () => {
    const { url } = await start({ password: "opensesame" });
    const body = await (await fetch(url)).text();
    expect(JSON.parse(body).error).toContain("LOCAL_PASSWORD");
    expect(body).not.toContain("opensesame");
  });

  test("the page slows down password guesses, but not for a known browser at the same address", async () => {
    const { log, lines } = recordingLog();
    const { url } = await start({ password: "opensesame", log });
    const enter = (password: string, cookie = "") =>
      fetch(url, { headers: { Cookie: cookie, Authorization: `Basic ${btoa(`me:${password}`)}` } });
    const [cookie = ""] = (await enter("opensesame")).headers.getSetCookie();
    expect(cookie).toMatch(/HttpOnly; SameSite=Strict$/);
    const statuses: number[] = [];
    for (let n = 0; n < 50; n++) statuses.push((await enter(`canary-${n}`)).status);
    expect(statuses.slice(0, 5)).toEqual([401, 401, 401, 401, 401]);
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(35);

    const known = cookie.split(";")[0] ?? "";
    expect((await enter("opensesame", known)).status).toBe(200);
    expect((await enter("opensesame", known)).headers.getSetCookie()).toEqual([]);
    expect((await enter("canary", known)).status).toBe(401);
    // A cookie alone gives no access.
    expect((await fetch(url, { headers: { Cookie: known } })).status).toBe(401);

    const warned = lines.filter(({ level }) => level === 40);
    expect(warned[0]).toMatchObject({ msg: "a wrong password of the local page was given", tries: 1 });
    expect(JSON.stringify(lines)).not.toMatch(/canary|opensesame/);
  });

  test("the page rejects a changed cookie, and a cookie of another password or key", async () => {
    const cookieOf = async (options: LocalPageOptions) => {
      const { url, close } = await start(options);
      const headers = { Authorization: `Basic ${btoa(`me:${options.password}`)}` };
      const [cookie = ""] = (await fetch(url, { headers })).headers.getSetCookie();
      await close();
      return cookie.split(";")[0] ?? "";
    };
    const foreign = [
      await cookieOf({ password: "the last one" }),
      await cookieOf({ password: "opensesame", browserKey: "c".repeat(32) }),
    ];
    const good = await cookieOf({ password: "opensesame" });
    const changed = good.replace(/=./, (start) => (start === "=A" ? "=B" : "=A"));
    const { url } = await start({ password: "opensesame" });
    for (const cookie of [...foreign, changed, good.slice(0, -1), "palaver-browser=x"]) {
      const headers = { Cookie: cookie, Authorization: `Basic ${btoa("me:opensesame")}` };
      // The page sets a new cookie, because this one proves nothing.
      expect((await fetch(url, { headers })).headers.getSetCookie()).toHaveLength(1);
    }
  });

  test("the page requires the password before it reads a body, and also for requests without a body", async () => {
    const { url } = await start({ password: "opensesame" });
    for (const path of ["/local/files", "/local/messages", "/local/nothing"]) {
      const outgoing = request(url + path, {
        method: "POST",
        headers: { "Transfer-Encoding": "chunked", Origin: url },
      });
      outgoing.on("error", () => {});
      outgoing.write("x");
      const [response] = (await once(outgoing, "response")) as [IncomingMessage];
      expect(response.statusCode).toBe(401);
      outgoing.destroy();
    }
  });

  test("the page refuses 256 KiB of JSON as too large", async () => {
    const { post } = await start();
    const response = await post("/local/messages", { text: "x".repeat(300_000) });
    expect(response.status).toBe(413);
    expect(await response.json()).toEqual({ error: expect.stringContaining("too large") });
  });
});

/** Needed because fetch cannot set a Host header. */
async function get(
  page: { url: string },
  path: string,
  headers: Record<string, string>,
): Promise<{ status: number; body: string }> {
  const outgoing = request(page.url + path, { headers }).end();
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  return { status: response.statusCode ?? 0, body: await text(response) };
}
