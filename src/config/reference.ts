import { z } from "zod";
import type { AdapterModule } from "../port/module.ts";
import type { VariableEntry } from "../port/variables.ts";
import { variables } from "./variables.ts";

interface Section {
  title: string;
  entries: readonly VariableEntry[];
  schemas: z.ZodRawShape;
}

type CoreEntries = ReadonlyArray<VariableEntry<keyof typeof variables>>;

const GATEWAY: CoreEntries = [
  {
    names: ["GATEWAY_BASE_URL"],
    unset: "the sandbox gateway inside Palaver",
    meaning: "The gateway's address, with or without `/v1`.",
  },
  {
    names: ["GATEWAY_API_KEY"],
    meaning: "Its key, sent as `Authorization: Bearer`. Required with `GATEWAY_BASE_URL`.",
  },
  {
    names: ["CHAT_MODEL"],
    meaning: "The model that answers, from `GET /v1/models`. Required with `GATEWAY_BASE_URL`.",
  },
  {
    names: ["IMAGE_MODEL"],
    unset: "no images; with the sandbox gateway, its own",
    meaning: "The model that creates images.",
  },
  {
    names: ["IMAGE_API"],
    meaning:
      "The way to request images: `generate-content`, `images`, `chat`, or the first that works (`auto`); see docs/models.md.",
  },
  {
    names: ["CHAT_FALLBACK_MODEL"],
    meaning: "The model that answers while `CHAT_MODEL` is down or at its limit.",
  },
  {
    names: ["GATEWAY_FALLBACK_BASE_URL", "GATEWAY_FALLBACK_API_KEY"],
    meaning: "A second gateway and its key, for when the first is down or at its limit.",
  },
  {
    names: ["SYSTEM_PROMPT"],
    unset: "a short one",
    meaning: "The model's instructions for every conversation.",
  },
  {
    names: ["GATEWAY_IMAGE_KEY_HEADER"],
    meaning: "A header such as `x-<vendor>-api-key` that carries the key if the image endpoint answers 401.",
  },
  {
    names: ["GATEWAY_HEADERS"],
    meaning:
      'Headers for the first gateway, as a JSON object: `{"x-portkey-provider":"openai"}`. They replace ours of the same name.',
  },
  {
    names: ["GATEWAY_EXTRA_BODY"],
    meaning:
      'Further fields of chat requests, as a JSON object: `{"reasoning_effort":"low"}`. Options of `/model` have priority.',
  },
  {
    names: ["GATEWAY_EXTRA_BODY_FILE"],
    meaning:
      'A JSON file with such fields for single models; these have priority: `{"some-model":{"reasoning_effort":"high"}}`.',
  },
  {
    names: ["MCP_CONFIG"],
    meaning: "The file that names tool servers; see docs/mcp.md.",
  },
  {
    names: ["FETCH_URL_HOSTS"],
    unset: "the model reads no pages",
    meaning:
      "Hosts whose pages the model can read, separated by commas: `docs.example.com` or `*.example.com` for https on public addresses, `http://wiki.internal:8080` for an internal one.",
  },
  {
    names: ["POLICY_FILE"],
    meaning: "A YAML or JSON file with rules, quotas, prices and models; see docs/policy.md.",
  },
  {
    names: ["GATEWAY_PORT"],
    unset: "8787",
    meaning: "Port of `npm run gateway`.",
  },
];

const NETWORK: CoreEntries = [
  {
    names: ["DATA_DIR"],
    meaning: "Folder of the SQLite file.",
  },
  {
    names: ["REDIS_URL"],
    unset: "the SQLite file",
    meaning:
      "Redis or Valkey for conversations and waiting questions, `redis://host:6379` or `rediss://host:6379`; see docs/processes.md.",
  },
  {
    names: ["ROLE"],
    meaning:
      "`ingress` receives events, `worker` answers them, `all` does both; see docs/processes.md. The first two need `REDIS_URL` and have no local page.",
  },
  {
    names: ["HOST", "PORT"],
    meaning: "Address and port of the HTTP server; `0.0.0.0` is every address of this machine.",
  },
  {
    names: ["PUBLIC_URL"],
    meaning:
      "The public address of this service, `https://…`, where the gateway fetches reference images, and platforms send events and people.",
  },
  {
    names: ["ENCRYPTION_KEY"],
    unset: "tool servers' OAuth tokens are not stored",
    meaning:
      "32 random bytes in base64 or hex (`openssl rand -base64 32`) that encrypt stored tokens: those of tool servers, and of workspaces that install the bot.",
  },
  {
    names: ["METRICS_TOKEN"],
    unset: "only programs on this machine can read both",
    meaning: "The Bearer token for `/metrics` and the details of `/readyz`, at least 16 characters.",
  },
  {
    names: ["ADMIN_PASSWORD"],
    unset: "no dashboard",
    meaning: "The password of the dashboard at `/admin`, at least 12 characters; see docs/dashboard.md.",
  },
  {
    names: ["ADMIN_TRUSTED_PROXY", "ADMIN_USER_HEADER"],
    meaning:
      "The addresses or networks (`10.0.0.0/8`), separated by commas, of proxies that admit only administrators to the dashboard, and the header with their name; see docs/dashboard.md.",
  },
];

const BOT: CoreEntries = [
  { names: ["BOT_NAME"], meaning: "The bot's name on the page." },
  {
    names: ["HISTORY_TTL_DAYS"],
    meaning: "Days that a conversation is stored after its last message.",
  },
  {
    names: ["HISTORY_MAX_MESSAGES", "HISTORY_MAX_TOKENS"],
    meaning:
      "The most that the model sees of a conversation: messages, and estimated tokens with files. Messages between people count only as tokens.",
  },
  {
    names: ["CONTEXT_MESSAGES"],
    meaning:
      "How many of a channel's last messages the model sees with a question there, 0 to 100. `/model --context` sets it for one channel.",
  },
  {
    names: ["DELETED_QUESTIONS"],
    meaning:
      "If a question is deleted, its answer gets a button that deletes it (`offer`), or is deleted too (`remove`).",
  },
  { names: ["IMAGINE_MAX_REFERENCES"], meaning: "Images that one image can start from, 1 to 16." },
  {
    names: ["RELAY_SECRETS"],
    unset: "one is created and stored with the data",
    meaning:
      "Keys for the gateway's links to people's images, at least 32 characters each, separated by commas. The first one signs; all are accepted.",
  },
  { names: ["MAX_CONCURRENT_TURNS"], meaning: "Conversations answered at the same time; others wait." },
  {
    names: ["SHUTDOWN_GRACE_SECONDS"],
    meaning:
      "The longest time from SIGTERM to the exit. Running answers stop seven seconds earlier: with `REDIS_URL` another process continues them; without it they are marked as partial.",
  },
  {
    names: ["LOG_LEVEL"],
    meaning:
      "`trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent`. Only `debug` and `trace` log the words of people and models.",
  },
];

const MAX_LINE_CHARS = 120;

/** Returns the core's sections, then one for each platform. The local page and the terminal come last. */
function toSections(modules: readonly AdapterModule[]): Section[] {
  const ofCore = (title: string, entries: CoreEntries): Section => ({ title, entries, schemas: variables });
  const [own, remote] = [modules.filter(({ surface }) => surface), modules.filter(({ surface }) => !surface)];
  const ofModule = ({ name: title, variables: { entries, schemas } }: AdapterModule): Section => ({
    title,
    entries,
    schemas,
  });
  return [
    ofCore("The gateway to the models", GATEWAY),
    ...remote.map(ofModule),
    ofCore("Network and storage", NETWORK),
    ...own.map(ofModule),
    ofCore("The bot", BOT),
  ];
}

/**
 * Returns the contents of `.env.example`. Its values are the defaults, so a copy changes nothing, even with all lines
 * enabled.
 */
export function printEnvExample(modules: readonly AdapterModule[]): string {
  const intro =
    "Copy to .env and fill in what you use. If everything stays empty, Palaver answers on its local page from the sandbox gateway, which needs no key. An empty variable counts as unset. `npm run setup` fills it in with you; docs/configuration.md has the same as a table.";
  const sections = toSections(modules).map(
    ({ title, entries, schemas }) => `## ${title}\n\n${entries.map((entry) => toLines(entry, schemas)).join("")}`,
  );
  return [toComment(intro), ...sections].join("\n");
}

function toLines({ names, meaning, unset }: VariableEntry, schemas: z.ZodRawShape): string {
  const text = unset === undefined ? meaning : `${meaning} Empty: ${unset}.`;
  const lines = names.map((name) => {
    const value = unset === undefined ? defaultOf(name, schemas) : undefined;
    return value === undefined ? `${name}=\n` : `# ${name}=${value}\n`;
  });
  return toComment(text) + lines.join("");
}

function toComment(text: string): string {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < MAX_LINE_CHARS) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(`# ${word}`);
  }
  return `${lines.join("\n")}\n`;
}

export function printConfigurationTables(modules: readonly AdapterModule[]): string {
  const sections = toSections(modules).map(({ title, entries, schemas }) => {
    const rows = entries.map(({ names, meaning, unset }) => {
      const defaults = names.flatMap((name) => defaultOf(name, schemas) ?? []).map((value) => `\`${value}\``);
      const cells = [names.map((name) => `\`${name}\``).join(", "), unset ?? defaults.join(", "), toLinked(meaning)];
      return `| ${cells.join(" | ")} |\n`;
    });
    return `## ${title}\n\n| variable | default | meaning |\n|---|---|---|\n${rows.join("")}`;
  });
  return sections.join("\n");
}

function toLinked(text: string): string {
  return text.replaceAll(/\bdocs\/([a-z]+\.md)\b/g, "[$1]($1)");
}

/** Returns a variable's default as text; undefined if it has none. */
function defaultOf(name: string, schemas: z.ZodRawShape): string | undefined {
  const data = z.object(schemas).safeParse({}).data?.[name];
  return typeof data === "string" || typeof data === "number" ? String(data) : undefined;
}
