import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { OPTIONAL_SCOPES, SCOPES } from "../adapters/slack/install/scopes.ts";
import { toShortcuts, toSlashCommands } from "../adapters/slack/install/slash-commands.ts";
import { DEFAULT_EVENTS } from "../lab/slack-sim/events.ts";
import { COMMANDS } from "../src/commands/commands.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string) => readFileSync(root + path, "utf8");

interface Manifest {
  display_information: { name: string; description: string };
  features: {
    bot_user: { display_name: string };
    agent_view: { agent_description: string; suggested_prompts: { title: string; message: string }[] };
    slash_commands: { command: string; description: string; usage_hint?: string; url?: string }[];
    shortcuts: { type: string; name: string; callback_id: string; description: string }[];
  };
  oauth_config: { scopes: { bot: string[]; bot_optional: string[] } };
  settings: { event_subscriptions: { bot_events: string[] }; socket_mode_enabled: boolean };
}

const manifest = JSON.parse(read("manifest.json")) as Manifest;
const { display_information: display, features, oauth_config: oauth, settings } = manifest;
const adapter = globSync("adapters/slack/**/*.ts", { cwd: root }).map(read).join("\n");

/** A bot can call the method with any one of these scopes. An empty list means that it needs no scope. */
const METHODS: Readonly<Record<string, readonly string[]>> = {
  "agents.sessions.setStatus": ["chat:write", "assistant:write"],
  "apps.connections.open": [],
  "assistant.threads.setStatus": ["chat:write", "assistant:write"],
  "assistant.threads.setSuggestedPrompts": ["assistant:write"],
  "assistant.threads.setTitle": ["assistant:write"],
  "assistant.search.context": ["search:read.public"],
  "auth.revoke": [],
  "auth.test": [],
  "chat.appendStream": ["chat:write"],
  "chat.delete": ["chat:write"],
  "chat.getPermalink": [],
  "chat.postEphemeral": ["chat:write"],
  "chat.postMessage": ["chat:write"],
  "chat.startStream": ["chat:write"],
  "chat.stopStream": ["chat:write"],
  "chat.update": ["chat:write"],
  "conversations.history": ["channels:history", "groups:history", "im:history", "mpim:history"],
  "conversations.info": ["channels:read", "groups:read", "im:read", "mpim:read"],
  "conversations.join": ["channels:join"],
  "conversations.members": ["channels:read", "groups:read", "im:read", "mpim:read"],
  "conversations.open": ["im:write", "mpim:write"],
  "conversations.replies": ["channels:history", "groups:history", "im:history", "mpim:history"],
  "files.completeUploadExternal": ["files:write"],
  "files.delete": ["files:write"],
  "files.getUploadURLExternal": ["files:write"],
  "files.info": ["files:read"],
  "oauth.v2.access": [],
  "reactions.add": ["reactions:write"],
  "reactions.remove": ["reactions:write"],
  "team.info": ["team:read"],
  "users.conversations": ["channels:read", "groups:read"],
  "users.info": ["users:read"],
  "users.list": ["users:read"],
  "views.open": [],
  "views.publish": [],
  "views.update": [],
};

const EVENT_SCOPES: Readonly<Record<string, readonly string[]>> = {
  app_mention: ["app_mentions:read"],
  agent_session_stopped: ["assistant:write", "chat:write"],
  "message.channels": ["channels:history"],
  "message.groups": ["groups:history"],
  "message.im": ["im:history"],
  "message.mpim": ["mpim:history"],
};

describe("manifest.json", () => {
  test("manifest.json requests the scopes that the adapter names, and no others", () => {
    expect(oauth.scopes).toEqual({ bot: Object.keys(SCOPES), bot_optional: OPTIONAL_SCOPES });
    expect(Object.keys(SCOPES)).toEqual(Object.keys(SCOPES).toSorted());
  });

  // "Optional scopes must also be listed in the corresponding bot fields."
  // https://docs.slack.dev/reference/app-manifest
  test("manifest.json lists each optional scope among the others too, and no optional scope that an event needs", () => {
    const { bot, bot_optional: optional } = oauth.scopes;
    expect(optional.filter((scope) => !bot.includes(scope))).toEqual([]);
    const required = bot.filter((scope) => !optional.includes(scope));
    const needed = settings.event_subscriptions.bot_events.flatMap((event) => EVENT_SCOPES[event] ?? []);
    expect(needed.filter((scope) => !required.includes(scope))).toEqual([]);
  });

  test("manifest.json requests a scope for every method that the adapter calls", () => {
    const called = [...adapter.matchAll(/["'`]((?:[a-z]+\.){1,2}[a-z][A-Za-z]+)["'`]/g)].map(([, name = ""]) => name);
    const methods = [...new Set(called)].filter(
      (name) => name in METHODS || /^(chat|conversations|files|users|views)\.(?!slack)/.test(name),
    );
    expect(methods.length).toBeGreaterThan(3);
    expect(methods.filter((name) => METHODS[name] === undefined)).toEqual([]);
    const isAllowed = (name: string) => METHODS[name]?.length === 0 || METHODS[name]?.some((scope) => scope in SCOPES);
    expect(methods.filter((name) => !isAllowed(name))).toEqual([]);
  });

  test("manifest.json requests the scope of every event, and the events that Slack's simulator sends", () => {
    const events = settings.event_subscriptions.bot_events;
    const needed = events.map((event) => EVENT_SCOPES[event]).filter((scopes) => scopes !== undefined);
    expect(needed.filter((scopes) => !scopes.some((scope) => scope in SCOPES))).toEqual([]);
    expect(events.filter((event) => !DEFAULT_EVENTS.includes(event))).toEqual([]);
  });

  test("manifest.json has the core's commands, and /ask, as `npm run docs` writes them", () => {
    expect(features.slash_commands).toEqual(toSlashCommands(COMMANDS));
    expect(features.slash_commands.map(({ command }) => command)).toContain("/ask");
  });

  test("manifest.json has the shortcuts of the adapter and of the core's commands, as `npm run docs` writes them", () => {
    expect(features.shortcuts).toEqual(toShortcuts(COMMANDS));
  });

  test("manifest.json can be pasted unchanged: Socket Mode, and no one's address", () => {
    expect(settings.socket_mode_enabled).toBe(true);
    expect(read("manifest.json")).not.toMatch(/https?:\/\//);
  });

  // https://docs.slack.dev/reference/app-manifest
  test("manifest.json keeps to Slack's length limits", () => {
    expect(display.name.length).toBeLessThanOrEqual(35);
    expect(display.description.length).toBeLessThanOrEqual(140);
    expect(features.bot_user.display_name).toMatch(/^[a-z0-9._-]{1,80}$/);
    expect(features.agent_view.agent_description.length).toBeLessThanOrEqual(300);
    expect(features.agent_view.suggested_prompts.length).toBeLessThanOrEqual(4);
    expect(features.slash_commands.length).toBeLessThanOrEqual(50);
    for (const { command, description, usage_hint: hint = "" } of features.slash_commands) {
      expect(command).toMatch(/^\/[a-z]{1,31}$/);
      expect(description.length).toBeLessThanOrEqual(2000);
      expect(hint.length).toBeLessThanOrEqual(1000);
    }
    expect(features.shortcuts.length).toBeLessThanOrEqual(10);
    for (const { callback_id: id, description, name } of features.shortcuts) {
      expect(id.length).toBeLessThanOrEqual(255);
      expect(description.length).toBeLessThanOrEqual(150);
      expect(name.length).toBeLessThanOrEqual(24);
    }
    expect(settings.event_subscriptions.bot_events.length).toBeLessThanOrEqual(100);
    expect(oauth.scopes.bot.length).toBeLessThanOrEqual(255);
  });

  test("docs/slack.md explains manifest.json, scope by scope", () => {
    const page = read("docs/slack.md");
    for (const scope of Object.keys(SCOPES)) {
      const [, mark] = new RegExp(`^\\| \`${scope}\` \\| (yes|no) \\| `, "m").exec(page) ?? [];
      expect([scope, mark]).toEqual([scope, OPTIONAL_SCOPES.includes(scope) ? "no" : "yes"]);
    }
  });
});
