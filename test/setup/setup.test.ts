import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { makeDataDir } from "../../lab/support/service.ts";
import { createSetup } from "../../src/setup/setup.ts";
import { start as startSandbox } from "../sandbox/sandbox.ts";
import { modules } from "../support/config.ts";
import { serveAnswers } from "../support/file-server.ts";
import { startSlack } from "../support/slack.ts";

const { signal } = new AbortController();

async function open(env: Record<string, string> = {}, before?: string) {
  const { path: folder, remove } = await makeDataDir();
  onTestFinished(remove);
  const path = join(folder, ".env");
  if (before !== undefined) writeFileSync(path, before);
  return { path, setup: createSetup({ env, folder, modules }) };
}

describe("the first run", () => {
  test("the setup offers a manifest for events by HTTP once the public address is known", async () => {
    const { setup } = await open({ BOT_NAME: "Team Bot" });
    const linkOf = (values: Record<string, string>) => {
      const [slack] = setup.steps(values);
      return slack?.ways.find(({ id }) => id === "http")?.tasks[0]?.link?.url;
    };
    expect(linkOf({})).toBeUndefined();
    const query = new URL(linkOf({ PUBLIC_URL: "https://bot.example.com/" }) ?? "").searchParams;
    const manifest: unknown = JSON.parse(query.get("manifest_json") ?? "");
    const url = "https://bot.example.com/slack/events";
    expect(manifest).toMatchObject({
      display_information: { name: "Team Bot" },
      features: { bot_user: { display_name: "team-bot" } },
      settings: {
        socket_mode_enabled: false,
        event_subscriptions: { request_url: url },
        interactivity: { request_url: url },
      },
    });
    const { features } = manifest as { features: { slash_commands: { url: string }[] } };
    expect(new Set(features.slash_commands.map((command) => command.url))).toEqual(new Set([url]));
  });

  test("the setup reports a value that no .env file can contain, and shows no lines with that value", async () => {
    const { setup } = await open();
    const values = { GATEWAY_BASE_URL: "http://127.0.0.1:1", GATEWAY_API_KEY: "a'b\"c`d", CHAT_MODEL: "m" };
    const problems = [expect.stringContaining("These values cannot be added to the file")];
    expect(setup.toEnvFile(values)).toEqual({ text: "", problems });
    expect(setup.save(values)).toEqual(problems);
  });

  test("the setup quotes a gateway, and nothing of any other server at an address", async () => {
    const { origin } = await serveAnswers({
      "/gateway/v1/models": (response) => response.writeHead(403).end('{"error":{"message":"Not for you."}}'),
      "/other/v1/models": (response) => response.writeHead(500).end("root:canary"),
      "/moved/v1/models": (response) => response.writeHead(302, { location: "/" }).end("canary"),
      "/page/v1/models": (response) => response.end("<p>canary</p>"),
    });
    const { setup } = await open();
    const ask = async (path: string) => {
      const values = { GATEWAY_BASE_URL: `${origin}/${path}`, GATEWAY_API_KEY: "k", CHAT_MODEL: "m" };
      return JSON.stringify([await setup.listModels(values, signal), await setup.check("gateway", values, signal)]);
    };
    expect(await ask("gateway")).toContain("Not for you.");
    for (const path of ["other", "moved", "page"]) expect(await ask(path)).not.toContain("canary");
  });

  test("the setup shows a step as off until its fields are filled in, and names the empty fields", async () => {
    const { setup } = await open();
    const check = (stepId: string, values: Record<string, string>) => setup.check(stepId, values, signal);
    const off = (labels: string) => [{ ok: false, what: `Off until you fill in ${labels}.` }];
    expect(await check("slack", {})).toEqual(off('"App-level token" and "Bot token"'));
    expect(await check("slack", { PUBLIC_URL: "https://bot.example", SLACK_BOT_TOKEN: " " })).toEqual(
      off('"Signing secret" and "Bot token"'),
    );
    expect(await check("discord", {})).toEqual(off('"Bot token"'));
    expect(await check("gateway", { CHAT_MODEL: "m" })).toEqual(off('"Address" and "Key"'));
    const { findings } = await setup.listModels({ GATEWAY_BASE_URL: "http://127.0.0.1:1" }, signal);
    expect(findings).toEqual(off('"Key"'));
  });

  test("the setup names a wrong field by its label, never by its variable", async () => {
    const [slack, gateway] = await Promise.all([startSlack(), startSandbox()]);
    const { setup } = await open({ SLACK_API_URL: slack.apiUrl });
    const address = { GATEWAY_BASE_URL: gateway.url, GATEWAY_API_KEY: "sk-sandbox-all" };
    const models = { CHAT_MODEL: "sandbox-text", IMAGE_MODEL: "sandbox-chat" };
    const wrong: [stepId: string, values: Record<string, string>][] = [
      ["slack", { SLACK_APP_TOKEN: slack.botToken, SLACK_BOT_TOKEN: slack.appToken }],
      ["slack", { SLACK_APP_TOKEN: "xapp-1-wrong", SLACK_BOT_TOKEN: "xoxb-wrong" }],
      ["slack", { PUBLIC_URL: "here", SLACK_SIGNING_SECRET: "short", SLACK_BOT_TOKEN: slack.botToken }],
      ["discord", { DISCORD_TOKEN: "wrong" }],
      ["gateway", { ...address, GATEWAY_BASE_URL: "here", CHAT_MODEL: "m" }],
      ["gateway", { ...address, GATEWAY_BASE_URL: "http://127.0.0.1:1", CHAT_MODEL: "m" }],
      ["gateway", { ...address, GATEWAY_API_KEY: "wrong", CHAT_MODEL: "m" }],
      ["gateway", { ...address, ...models }],
      ["gateway", { ...address, CHAT_MODEL: "sandbox-image" }],
    ];
    for (const [stepId, values] of wrong) {
      const found = JSON.stringify(await setup.check(stepId, values, signal));
      expect(found).not.toMatch(/[A-Z]+_[A-Z]+|--\w/);
    }
    const unpaired = { SLACK_BOT_TOKEN: "xoxb-1", GATEWAY_API_KEY: "k" };
    expect(setup.toEnvFile(unpaired).problems.join(" ")).toMatch(/"Address" \(Gateway\).*"Bot token" \(Slack\)/);
  });

  test("the setup names what a token lacks, and no secret", async () => {
    const slack = await startSlack();
    const { setup } = await open({ SLACK_API_URL: slack.apiUrl });
    const values = { SLACK_APP_TOKEN: "xapp-1-wrong-one", SLACK_BOT_TOKEN: slack.botToken };
    const findings = await setup.check("slack", values, signal);
    expect(findings.filter(({ ok }) => !ok)).toEqual([
      {
        ok: false,
        what: '"App-level token": Slack refuses this value (invalid_auth).',
        fix: expect.stringContaining("Copy it"),
      },
    ]);
    expect(JSON.stringify(findings)).not.toContain(slack.botToken);
  });

  test("the setup lists the gateway's models, or the reason why it cannot", async () => {
    const { url } = await startSandbox();
    const { setup } = await open();
    const found = await setup.listModels({ GATEWAY_BASE_URL: `${url}/v1/`, GATEWAY_API_KEY: "sk-sandbox-all" }, signal);
    expect(found).toEqual({ models: expect.arrayContaining(["sandbox-chat"]), findings: [] });
    const refused = await setup.listModels({ GATEWAY_BASE_URL: url, GATEWAY_API_KEY: "sk-none" }, signal);
    expect(refused).toEqual({ models: [], findings: [{ ok: false, what: expect.anything(), fix: expect.anything() }] });
    const { origin } = await serveAnswers({ "/v1/models": (response) => response.writeHead(404).end() });
    const unlisted = await setup.listModels({ GATEWAY_BASE_URL: origin, GATEWAY_API_KEY: "k" }, signal);
    expect(unlisted).toEqual({ models: [], findings: [{ ok: true, what: expect.stringContaining("does not list") }] });
    const missing = await setup.listModels({ GATEWAY_BASE_URL: "nowhere", GATEWAY_API_KEY: "k" }, signal);
    expect(missing.findings).toEqual([{ ok: false, what: expect.stringContaining('"Address" must be') }]);
  });

  test("the setup adds lines to an existing file, also a second time, and saves nothing that would not start", async () => {
    const { path, setup } = await open({ HISTORY_TTL_DAYS: "5" }, "# mine\nHISTORY_TTL_DAYS=5\nSLACK_BOT_TOKEN=\n");
    expect(setup.save({ SLACK_BOT_TOKEN: "xoxb-1" })).toEqual([
      expect.stringContaining('"Bot token" (Slack) is not enough'),
    ]);
    expect(readFileSync(path, "utf8")).toBe("# mine\nHISTORY_TTL_DAYS=5\nSLACK_BOT_TOKEN=\n");
    const values = { SLACK_BOT_TOKEN: "xoxb-1", SLACK_APP_TOKEN: "xapp-1" };
    expect(setup.save(values)).toEqual([]);
    expect(setup.save({ ...values, SLACK_APP_TOKEN: "xapp-2" })).toEqual([]);
    expect(readFileSync(path, "utf8")).toBe(
      "# mine\nHISTORY_TTL_DAYS=5\nSLACK_BOT_TOKEN=xoxb-1\nSLACK_APP_TOKEN=xapp-2\n",
    );
  });

  test("the setup refuses to combine a new gateway address with the old key, wherever the key is set", async () => {
    const before = "GATEWAY_BASE_URL=https://old.example\nGATEWAY_API_KEY=old-key\nCHAT_MODEL=m\n";
    const moved = { GATEWAY_BASE_URL: "https://evil.example" };
    const problem = expect.stringContaining('"Key" (Gateway) belongs to the current address');
    const { setup, path } = await open({}, before);
    expect(setup.save(moved)).toEqual([problem]);
    expect(setup.save({ ...moved, GATEWAY_API_KEY: " " })).toEqual([problem]);
    expect(readFileSync(path, "utf8")).toBe(before);
    expect(setup.save({ GATEWAY_BASE_URL: "https://old.example", CHAT_MODEL: "n" })).toEqual([]);
    expect(setup.save({ ...moved, GATEWAY_API_KEY: "new-key" })).toEqual([]);

    const outer = await open({ GATEWAY_API_KEY: "old-key", CHAT_MODEL: "m" });
    expect(outer.setup.save(moved)).toEqual([problem]);
  });

  test("the setup sends no environment value of the current gateway to another address", async () => {
    const bodies: string[] = [];
    const { origin } = await serveAnswers({
      "/v1/models": (response) => response.end('{"data":[{"id":"m"}]}'),
      "/v1/chat/completions": (response, request) => {
        request.on("data", (chunk) => bodies.push(String(chunk)));
        request.on("end", () => response.writeHead(400).end("{}"));
      },
    });
    const values = { GATEWAY_BASE_URL: origin, GATEWAY_API_KEY: "k", CHAT_MODEL: "m" };
    const extra = { GATEWAY_EXTRA_BODY: '{"secret":"canary"}' };
    const { setup: moved } = await open({ ...extra, GATEWAY_BASE_URL: "https://old.example" });
    await moved.check("gateway", values, signal);
    expect(bodies.join("")).not.toContain("canary");
    const { setup: same } = await open({ ...extra, GATEWAY_BASE_URL: origin });
    await same.check("gateway", values, signal);
    expect(bodies.join("")).toContain("canary");
  });

  test("the setup names values that the environment overrides, and accepts no variable that belongs to no step", async () => {
    const { setup, path } = await open({ CHAT_MODEL: "outer" });
    const values = {
      GATEWAY_BASE_URL: "http://127.0.0.1:1",
      GATEWAY_API_KEY: "k",
      CHAT_MODEL: "inner",
      NODE_OPTIONS: "-x",
    };
    const { text, problems } = setup.toEnvFile(values);
    expect(problems).toEqual([
      `"Model that answers" (Gateway) is set in the environment (CHAT_MODEL), which overrides ${path}.`,
    ]);
    expect(text).toBe("GATEWAY_BASE_URL=http://127.0.0.1:1\nGATEWAY_API_KEY=k\nCHAT_MODEL=inner\n");
  });
});
