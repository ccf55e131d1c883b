import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { makeDataDir, startService } from "../../lab/support/service.ts";
import { type Answer, body, event, events, json, refusal, startFaultServer, words } from "../support/fault-server.ts";
import { connectLocal, isFinal } from "../support/local-client.ts";

const KEY = "sk-canary-0123456789abcdef0123456789";
const PASSWORD = "canary-password-of-the-page";

/** A gateway that quotes the key wherever it can. */
const indiscretions: Answer[] = [
  refusal(401, `Incorrect API key provided: ${KEY}. Authorization was Bearer ${KEY}.`),
  refusal(400, `headers: {"authorization":"Bearer ${KEY}"}`),
  refusal(429, `rate limit exceeded for ${KEY}`),
  body(500, "text/html", `<pre>Bearer ${KEY}</pre>`),
  events(words("So far"), event({ error: { message: `the key ${KEY} was revoked` } })),
  events(words("So far"), `data: {"broken ${KEY}\n\n`.repeat(5)),
  events(`data: ${KEY}\n\n`),
  body(200, "text/html", `<p>${KEY}</p>`),
  json(302, {}, { location: `http://127.0.0.1:9/?key=${KEY}` }),
];

test("no log line, message or stored value contains a key that the gateway quotes back", async () => {
  let turn = 0;
  // Every attempt at a turn gets the same response. Some attempts are retried.
  const upstream = await startFaultServer((response, received) => indiscretions[turn]?.(response, received));
  const folder = await makeDataDir();
  onTestFinished(folder.remove);
  const service = await startService(folder.path, {
    GATEWAY_BASE_URL: upstream.url,
    GATEWAY_API_KEY: KEY,
    CHAT_MODEL: "m",
    LOG_LEVEL: "trace",
    SYSTEM_PROMPT: "Be kind.",
  });
  onTestFinished(async () => void (await service.end("SIGKILL")));
  const client = await connectLocal(service.url);
  for (turn = 0; turn < indiscretions.length; turn++) {
    await client.send(`question ${turn}`, { chat: `chat${turn}` });
    await client.until((all) => all.filter(isFinal).length === turn + 1);
  }
  const answers = client.messages().filter(isFinal);
  client.close();
  expect(await service.end("SIGTERM")).toBe(0);

  expect(upstream.received.every(({ headers }) => headers.authorization === `Bearer ${KEY}`)).toBe(true);
  expect(answers.every(({ text }) => text !== "")).toBe(true);
  expect(JSON.stringify(answers)).not.toContain("canary");
  expect(service.lines.join("\n")).not.toContain("canary");
  for (const name of await readdir(folder.path)) {
    expect((await readFile(join(folder.path, name))).includes("canary"), name).toBe(false);
  }
});

test("the page asks for its password, and no log or store contains it", async () => {
  const folder = await makeDataDir();
  onTestFinished(folder.remove);
  const service = await startService(folder.path, { LOCAL_PASSWORD: PASSWORD, LOG_LEVEL: "trace" });
  onTestFinished(async () => void (await service.end("SIGKILL")));
  const ask = (password: string) =>
    fetch(service.url, { headers: { authorization: `Basic ${btoa(`anybody:${password}`)}` } });
  expect((await fetch(service.url)).status).toBe(401);
  expect((await ask("wrong")).status).toBe(401);
  expect((await ask(PASSWORD)).status).toBe(200);
  expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
  await service.end("SIGTERM");
  expect(service.lines.join("\n")).not.toContain(PASSWORD);
  expect(service.lines.join("\n")).not.toContain(btoa(`anybody:${PASSWORD}`));
});
