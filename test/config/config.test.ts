import { describe, expect, test } from "vitest";
import { ConfigError } from "../../src/config/config.ts";
import { variables } from "../../src/config/variables.ts";
import { CONFIG_VARIABLES, modules, platformOf, readConfig } from "../support/config.ts";

/** A secret in the platforms' own formats. */
const SECRET = "5ec".repeat(11).slice(0, 32);
const TOKEN = `${Buffer.from("123456789012345678").toString("base64url")}.abc.def`;
const GATEWAY = { GATEWAY_BASE_URL: "https://gateway.example", GATEWAY_API_KEY: "key-1", CHAT_MODEL: "large" };

/** Returns the problems of `env`. Empty if it is valid. */
function problemsOf(env: Record<string, string | undefined>): readonly string[] {
  try {
    readConfig(env);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

describe("readConfig", () => {
  test("readConfig needs no variable: by default the sandbox answers on the local page", () => {
    const config = readConfig({});
    expect(config).toMatchObject({
      gateway: { baseUrl: undefined, apiKey: undefined, chatModel: "sandbox-chat", imageModel: "sandbox-image" },
      platforms: [{ module: { platform: "local" }, config: { password: undefined, isAlone: true } }],
      allowedHosts: ["127.0.0.1"],
      redisUrl: undefined,
      role: "all",
      dataDir: "./data",
      host: "127.0.0.1",
      port: 3000,
      publicUrl: undefined,
      relaySecrets: [],
      botName: "Palaver",
      logLevel: "info",
    });
    expect(config.limits).toEqual({
      historyTtlMs: 30 * 86_400_000,
      historyMaxMessages: 60,
      historyMaxTokens: 16_000,
      contextMessages: 15,
      maxConcurrentTurns: 16,
      shutdownGraceMs: 25_000,
      maxReferences: 8,
    });
    expect(config.gateway.systemPrompt).not.toBe("");
  });

  test.each([
    ["fd00::12", "[fd00::12]"],
    ["FD00:0:0::12", "[fd00::12]"],
    ["Bot.Internal", "bot.internal"],
  ])("readConfig lets browsers reach HOST %s as %s", (HOST, asked) => {
    expect(readConfig({ HOST, LOCAL_PASSWORD: "open sesame" }).allowedHosts).toEqual([asked]);
  });

  test("readConfig counts an empty or blank variable as unset", () => {
    const empty = Object.fromEntries(CONFIG_VARIABLES.map((name) => [name, " "]));
    expect(readConfig(empty)).toEqual(readConfig({}));
  });

  test.each([
    ["reasoning_effort=low", /^GATEWAY_EXTRA_BODY must be a JSON object, like /],
    ["[1]", /must be a JSON object/],
    ['{"model":"x","stream":false}', /^GATEWAY_EXTRA_BODY must not set model, stream: Palaver sets that itself\.$/],
    [
      '{"temperature":3}',
      /^GATEWAY_EXTRA_BODY isn't valid for the gateway's API: temperature: Too big: expected number to be <=2\.$/,
    ],
  ])("readConfig reports wrong fields for the gateway in one sentence: %s", (json, sentence) => {
    expect(problemsOf({ GATEWAY_EXTRA_BODY: json })).toEqual([expect.stringMatching(sentence)]);
  });

  test("readConfig reports a wrong file of fields for models in one sentence", () => {
    const none = () => {
      throw Object.assign(new Error("There is no such file."), { code: "ENOENT" });
    };
    const about = (text: () => string) => {
      const read = (path: string) => (path === "models.json" ? text() : none());
      try {
        return readConfig({ GATEWAY_EXTRA_BODY_FILE: "models.json" }, read).gateway.extraBody;
      } catch (error) {
        return (error as ConfigError).problems;
      }
    };
    expect(about(none)).toEqual(["GATEWAY_EXTRA_BODY_FILE must be the path of a file that can be read."]);
    expect(about(() => "{")).toEqual([
      expect.stringContaining('must be a JSON object with fields for each model, like {"'),
    ]);
    expect(about(() => '{"large":7}')).toEqual([
      'GATEWAY_EXTRA_BODY_FILE must have a JSON object of fields (for the model "large").',
    ]);
    expect(about(() => '{"large":{"user":"x"}}')).toEqual([expect.stringContaining("must not set user")]);
  });

  test("readConfig reads every variable", () => {
    const readText = (path: string) => {
      if (path === "tools.json") return '{"mcpServers":{"wiki":{"url":"https://wiki.example/mcp"}}}';
      if (path === "policy.yaml") return "$schema: policy.schema.json";
      expect(path).toBe("models.json");
      return '{"large":{"stream_options":{"include_usage":true}}}';
    };
    const config = readConfig(
      {
        ...GATEWAY,
        GATEWAY_BASE_URL: "https://gateway.example/llm/",
        GATEWAY_IMAGE_KEY_HEADER: "X-Vendor-API-Key",
        GATEWAY_FALLBACK_BASE_URL: "https://other.example/v1/",
        GATEWAY_FALLBACK_API_KEY: "key-2",
        CHAT_FALLBACK_MODEL: "small",
        GATEWAY_EXTRA_BODY: '{"reasoning_effort":"low"}',
        GATEWAY_EXTRA_BODY_FILE: "models.json",
        MCP_CONFIG: "tools.json",
        POLICY_FILE: "policy.yaml",
        FETCH_URL_HOSTS: "docs.example.com,http://wiki.internal:8080",
        IMAGE_MODEL: "painter",
        IMAGE_API: "images",
        SYSTEM_PROMPT: "Be brief.",
        SLACK_BOT_TOKEN: "xoxb-1",
        SLACK_APP_TOKEN: "xapp-1",
        SLACK_API_URL: "http://127.0.0.1:9000/api/",
        SLACK_ALLOWED_BOTS: "B0BUILD, U0DEPLOY,",
        DISCORD_TOKEN: "abc.def.ghi",
        DISCORD_API_URL: "http://127.0.0.1:9001/api/",
        DISCORD_THREADS: "off",
        DELETED_QUESTIONS: "remove",
        DISCORD_GUILD_ID: "123456789012345678",
        SHARDS: "0,2",
        SHARD_COUNT: "4",
        REDIS_URL: "redis://:secret-word@127.0.0.1:6379/1",
        DATA_DIR: "/var/lib/palaver",
        HOST: "0.0.0.0",
        PORT: "0",
        PUBLIC_URL: "https://Bot.example/",
        METRICS_TOKEN: "m".repeat(16),
        RELAY_SECRETS: `${"n".repeat(32)},${"o".repeat(40)}`,
        IMAGINE_MAX_REFERENCES: "4",
        LOCAL_CHAT: "on",
        LOCAL_PASSWORD: "open sesame",
        BOT_NAME: "Ada",
        ROLE: "all",
        LOG_LEVEL: "debug",
        HISTORY_TTL_DAYS: "1",
        HISTORY_MAX_MESSAGES: "5",
        HISTORY_MAX_TOKENS: "1000",
        CONTEXT_MESSAGES: "0",
        MAX_CONCURRENT_TURNS: "2",
        SHUTDOWN_GRACE_SECONDS: "0",
      },
      readText,
    );
    expect(config).toEqual({
      gateway: {
        baseUrl: "https://gateway.example/llm",
        apiKey: "key-1",
        imageApi: "images",
        imageKeyHeader: "x-vendor-api-key",
        chatModel: "large",
        imageModel: "painter",
        systemPrompt: "Be brief.",
        extraBody: {
          all: { reasoning_effort: "low" },
          models: new Map([["large", { stream_options: { include_usage: true } }]]),
        },
        fallback: { model: "small", gateway: { baseUrl: "https://other.example", apiKey: "key-2" } },
      },
      modules,
      platforms: [
        {
          module: modules.find(({ platform }) => platform === "slack"),
          config: {
            mode: "socket",
            botToken: "xoxb-1",
            oauth: undefined,
            appToken: "xapp-1",
            apiUrl: "http://127.0.0.1:9000/api/",
            publicUrl: "https://Bot.example",
            allowedBots: ["B0BUILD", "U0DEPLOY"],
          },
        },
        {
          module: modules.find(({ platform }) => platform === "discord"),
          config: {
            token: "abc.def.ghi",
            apiUrl: "http://127.0.0.1:9001/api",
            threads: "off",
            guildId: "123456789012345678",
            shards: { ids: [0, 2], count: 4 },
          },
        },
        {
          module: modules.find(({ platform }) => platform === "local"),
          config: { password: "open sesame", isAlone: false },
        },
      ],
      platformSecrets: ["xoxb-1", "xapp-1", "abc.def.ghi", "open sesame"],
      allowedHosts: ["bot.example"],
      redisUrl: "redis://:secret-word@127.0.0.1:6379/1",
      role: "all",
      dataDir: "/var/lib/palaver",
      host: "0.0.0.0",
      port: 0,
      publicUrl: "https://Bot.example",
      policy: { path: "policy.yaml", policy: {} },
      metricsToken: "m".repeat(16),
      fetchUrlHosts: ["docs.example.com", "http://wiki.internal:8080"],
      relaySecrets: ["n".repeat(32), "o".repeat(40)],
      mcp: {
        path: "tools.json",
        refused: [],
        servers: [
          {
            name: "wiki",
            transport: { type: "http", url: "https://wiki.example/mcp", headers: {}, oauth: undefined },
            allow: undefined,
            deny: [],
            channels: undefined,
            approve: "acting",
            timeoutMs: 60_000,
          },
        ],
      },
      botName: "Ada",
      removesWithQuestion: true,
      logLevel: "debug",
      limits: {
        historyTtlMs: 86_400_000,
        historyMaxMessages: 5,
        historyMaxTokens: 1000,
        contextMessages: 0,
        maxConcurrentTurns: 2,
        shutdownGraceMs: 0,
        maxReferences: 4,
      },
    });
  });

  test("readConfig uses HTTP for Slack if only a signing secret is given with the token", () => {
    expect(platformOf(readConfig({ SLACK_BOT_TOKEN: "xoxb-1", SLACK_SIGNING_SECRET: SECRET }), "slack")).toEqual({
      mode: "http",
      botToken: "xoxb-1",
      oauth: undefined,
      signingSecret: SECRET,
      apiUrl: undefined,
      allowedBots: [],
    });
    const both = readConfig({ SLACK_BOT_TOKEN: "xoxb-1", SLACK_SIGNING_SECRET: SECRET, SLACK_APP_TOKEN: "xapp-1" });
    expect(platformOf(both, "slack")).toMatchObject({ mode: "socket" });
  });

  test("readConfig lets workspaces install the Slack app themselves, over either transport", () => {
    const oauth = {
      SLACK_CLIENT_ID: "123.456",
      SLACK_CLIENT_SECRET: "client-secret",
      SLACK_STATE_SECRET: "a-long-state-secret",
      ENCRYPTION_KEY: "0f".repeat(32),
      PUBLIC_URL: "https://bot.example",
    };
    expect(platformOf(readConfig({ ...oauth, SLACK_SIGNING_SECRET: SECRET }), "slack")).toEqual({
      mode: "http",
      botToken: undefined,
      oauth: {
        clientId: "123.456",
        clientSecret: "client-secret",
        stateSecret: "a-long-state-secret",
        encryptionKey: new Uint8Array(32).fill(15),
      },
      signingSecret: SECRET,
      apiUrl: undefined,
      publicUrl: "https://bot.example",
      allowedBots: [],
    });
    expect(platformOf(readConfig({ ...oauth, SLACK_APP_TOKEN: "xapp-1" }), "slack")).toMatchObject({ mode: "socket" });
    expect(platformOf(readConfig({ ...oauth, SLACK_APP_TOKEN: "xapp-1" }), "local")).toBeUndefined();
  });

  test("readConfig accepts the same encryption key in hex, base64 and base64url", () => {
    const key = Buffer.alloc(32, 0xfb);
    const given = (["hex", "base64", "base64url"] as const).map((encoding) => key.toString(encoding));
    const keys = given.map((text) => variables.ENCRYPTION_KEY.parse(text));
    expect(keys).toEqual([new Uint8Array(key), new Uint8Array(key), new Uint8Array(key)]);
  });

  test("readConfig switches the page on automatically only while no platform is configured", () => {
    expect(platformOf(readConfig({ DISCORD_TOKEN: TOKEN }), "local")).toBeUndefined();
    expect(platformOf(readConfig({ DISCORD_TOKEN: TOKEN, LOCAL_CHAT: "on" }), "local")).toBeDefined();
    expect(platformOf(readConfig({ LOCAL_CHAT: "off" }), "local")).toBeUndefined();
  });

  test("readConfig leaves images off if a real gateway has no image model", () => {
    expect(readConfig(GATEWAY).gateway.imageModel).toBeUndefined();
  });

  test("readConfig reports all problems at once, by variable", () => {
    const problems = problemsOf({
      DISCORD_TOKE: "x",
      PORT: "http",
      LOG_LEVEL: "loud",
      SLACK_APP_TOKEN: "xapp-1",
      ROLE: "worker",
      LOCAL_CHAT: "off",
      PUBLIC_URL: "http://bot.example",
    });
    expect(problems).toHaveLength(6);
    expect(problems[0]).toBe("DISCORD_TOKE is not known; did you mean DISCORD_TOKEN?");
    const variables = new Set(problems.map((problem) => problem.split(" ")[0]));
    expect(variables).toEqual(
      new Set(["DISCORD_TOKE", "LOG_LEVEL", "PORT", "PUBLIC_URL", "REDIS_URL", "SLACK_BOT_TOKEN"]),
    );
  });

  test("readConfig reports only the first problem of each variable", () => {
    expect(problemsOf({ SLACK_API_URL: "ftp://slack.example" })).toEqual([
      expect.stringMatching(/^SLACK_API_URL must be an address that starts with https/),
    ]);
  });

  test("readConfig rejects a secret in a form that its platform never uses, with one sentence for each", () => {
    const slack = { SLACK_BOT_TOKEN: "xoxb-1", SLACK_SIGNING_SECRET: "5ec" };
    expect(problemsOf({ ...slack, DISCORD_TOKEN: "a.b.c" })).toEqual([
      expect.stringMatching(/^SLACK_SIGNING_SECRET must be the signing secret from Basic Information, 32 digits/),
      expect.stringMatching(/^DISCORD_TOKEN must be the bot's token \(three parts.*Developer Portal under Bot\.$/),
    ]);
    expect(problemsOf({ ...slack, SLACK_SIGNING_SECRET: "xoxb-1", DISCORD_TOKEN: "Bot a.b.c" })).toHaveLength(2);
    expect(problemsOf({ ...slack, SLACK_SIGNING_SECRET: SECRET, DISCORD_TOKEN: TOKEN })).toEqual([]);
    const elsewhere = { SLACK_API_URL: "http://127.0.0.1/api/", DISCORD_API_URL: "http://127.0.0.1/api" };
    expect(problemsOf({ ...slack, ...elsewhere, DISCORD_TOKEN: "a.b.c" })).toEqual([]);
  });

  test("the error of readConfig lists every problem in its message", () => {
    const error = new ConfigError(["A is wrong.", "B is missing."]);
    expect(error.message).toBe(
      "The configuration has 2 problems:\n  - A is wrong.\n  - B is missing.\n.env.example explains every variable.",
    );
    expect(new ConfigError(["A is wrong."]).message).toContain("one problem");
  });

  test("readConfig never prints a value, whatever variable it is in", () => {
    for (const prefix of ["", "!ÿ ", "xoxq-", "xoxb-", "xapp-", "Bot ", "redis://", "https://x:"]) {
      const env = Object.fromEntries(
        [...CONFIG_VARIABLES, "SLACK_TOKEN"].map((name) => [name, `${prefix}canary-5e1f`]),
      );
      const problems = problemsOf(env);
      expect(problems.length).toBeGreaterThan(5);
      expect(problems.join("\n")).not.toMatch(/canary|5e1f/);
    }
  });
});

describe("misspelled variables", () => {
  test.each([
    ["DISCORD_TOKE", "DISCORD_TOKEN"],
    ["DISCORD_BOT_TOKEN", "DISCORD_TOKEN"],
    ["GATEWAY_URL", "GATEWAY_BASE_URL"],
    ["GATEWAY_KEY", "GATEWAY_API_KEY"],
    ["LOG_LEVLE", "LOG_LEVEL"],
    ["DISCORD_URL", "DISCORD_API_URL"],
    ["SLACK_BOT_USER_TOKEN", "SLACK_BOT_TOKEN"],
    ["REDIS_URI", "REDIS_URL"],
    ["public_url", "PUBLIC_URL"],
  ])("readConfig reports the misspelled variable %s as %s", (name, meant) => {
    expect(problemsOf({ [name]: "x" })).toEqual([`${name} is not known; did you mean ${meant}?`]);
  });

  test("readConfig reports a misspelled variable with every name that is equally near", () => {
    expect(problemsOf({ SLACK_TOKEN: "x" })).toEqual([
      "SLACK_TOKEN is not known; did you mean SLACK_BOT_TOKEN or SLACK_APP_TOKEN?",
    ]);
  });

  test("readConfig assumes that a variable belongs to another program if the similar variable is set", () => {
    expect(problemsOf({ REDIS_URL: "redis://127.0.0.1:6379", REDIS_URI: "x" })).toEqual([]);
  });

  test("readConfig does not report variables of other programs as misspelled", () => {
    const foreign = {
      PATH: "/bin",
      HOME: "/root",
      HOSTNAME: "box",
      HOST_NAME: "box",
      HOSTS: "box",
      MY_DATA: "x",
      SLACK_TEAM_ID: "T1",
      DATABASE_URL: "x",
      SHELL: "/bin/sh",
      npm_config_user_agent: "npm",
      NODE_ENV: "production",
      REDIS_SERVICE_HOST: "10.0.0.1",
      REDIS_PORT: "tcp://10.0.0.1:6379",
      GATEWAY_SERVICE_HOST: "10.0.0.2",
      GATEWAY_SERVICE_PORT_HTTP: "80",
      GATEWAY_PORT: "tcp://10.0.0.2:8080",
      GATEWAY_PORT_8080_TCP: "tcp://10.0.0.2:8080",
      GATEWAY_PORT_8080_TCP_ADDR: "10.0.0.2",
      XDG_DATA_DIRS: "/usr/share",
    };
    for (const [name, value] of Object.entries(foreign)) expect(problemsOf({ [name]: value })).toEqual([]);
    expect(problemsOf(foreign)).toEqual([]);
  });
});
