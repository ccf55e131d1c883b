import { createHash } from "node:crypto";
import { z } from "zod";
import { editDistance } from "../text/edit-distance.ts";

/** An MCP server in `mcp.json`, with its variables replaced by their values. */
export interface McpServerConfig {
  /** Prefix of the names of the server's tools. */
  name: string;
  transport: McpTransport;
  /** The tools that the model can use. Undefined: all except those in `deny`. */
  allow: readonly string[] | undefined;
  deny: readonly string[];
  /** Where the tools are available, as `{platform}` or `{platform}:{channel}`. Undefined: everywhere. */
  channels: readonly string[] | undefined;
  /** Which calls need a person's approval: all calls, calls that can change something, or no calls. */
  approve: "always" | "acting" | "never";
  timeoutMs: number;
}

export type McpTransport =
  | {
      type: "stdio";
      command: string;
      args: readonly string[];
      env: Readonly<Record<string, string>>;
      cwd: string | undefined;
    }
  | {
      /** Streamable HTTP, or its predecessor with server-sent events. */
      type: "http" | "sse";
      url: string;
      headers: Readonly<Record<string, string>>;
      oauth: McpOauth | undefined;
    };

/** Client credentials, which an authorization server exchanges for tokens. */
export interface McpOauth {
  clientId: string;
  clientSecret: string;
  /** The only authorization server that receives the client secret. */
  issuer: string;
  scope: string | undefined;
}

export interface McpSettings {
  servers: readonly McpServerConfig[];
  /** Problems of the whole file. Each is one sentence without values. */
  problems: readonly string[];
  /** Problems of the servers that are skipped. */
  refused: readonly string[];
}

type Environment = Readonly<Record<string, string | undefined>>;

/** A server's name and a tool's name share 64 characters, so a server's name must be short. */
const SERVER_NAME = /^[a-z0-9]+(?:[-_][a-z0-9]+)*$/i;
const MAX_SERVER_NAME_CHARS = 24;
const HASH_CHARS = 6;
const MAX_TIMEOUT_SECONDS = 600;
/** Some clients measure `timeout` in milliseconds, others in seconds. A number below this is read as seconds. */
const MIN_TIMEOUT_MS = 1_000;
const MAX_SERVERS = 50;
/** Suggests a known field for an unknown one if at most this many edits separate them. */
const MAX_SLIPS = 2;
/** Matches `${NAME}` and `${NAME:-text}`. Some clients write `env:` before the name. */
const VARIABLE = /\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;
/** Matches placeholders that only an editor can replace. */
const EDITORS_VARIABLE = /\$\{(?:input:|command:|config:|workspaceFolder|userHome)/;
/** Fields of other clients that are ignored: descriptions, and permissions that this file cannot grant. */
const PASSED_OVER = new Set([
  "alwaysAllow",
  "author",
  "autoApprove",
  "category",
  "comment",
  "description",
  "dev",
  "fromGalleryId",
  "gallery",
  "homepage",
  "icon",
  "icons",
  "label",
  "name",
  "note",
  "notes",
  "repository",
  "source",
  "tags",
  "title",
  "trust",
  "version",
  "watchPaths",
]);
/**
 * Other clients' names for our fields. If a server uses several names of one field, the last name in this list counts.
 */
const ALIASES = { serverUrl: "url", httpUrl: "url", transportType: "type", transport: "type" } as const;
/** Other clients' names for the kinds of transport, in lower case without punctuation. */
const KINDS: Readonly<Record<string, string>> = {
  local: "stdio",
  remote: "http",
  streamable: "http",
  streamablehttp: "http",
};

/** Behind a company's proxy, programs such as `npx` need these variables. */
const NETWORK = [
  "NODE_EXTRA_CA_CERTS",
  "SSL_CERT_FILE",
  ...["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "NPM_CONFIG_REGISTRY"].flatMap((name) => [name, name.toLowerCase()]),
];

const common = {
  disabled: z.boolean("must be true or false").default(false),
  tools: z.strictObject({ allow: texts().optional(), deny: texts().default([]) }).default({ deny: [] }),
  channels: z
    .array(z.string().regex(/^[a-z]+(:[^\s:]+)?$/), 'must be a list of channels such as "platform:channel" or "local"')
    .optional(),
  approve: z.enum(["always", "acting", "never"], 'must be one of "always", "acting", "never"').default("acting"),
  timeoutSeconds: z
    .number("must be a number of seconds from 1 to 600")
    .min(1, "must be at least 1")
    .max(MAX_TIMEOUT_SECONDS, `must be at most ${MAX_TIMEOUT_SECONDS}`)
    .default(60),
};

const stdio = z.strictObject({
  ...common,
  type: z.literal("stdio", 'must be "stdio" if there is a command').optional(),
  command: z.string("must be the server's program").min(1, "must be the server's program"),
  args: texts().default([]),
  env: values().default({}),
  cwd: z.string("must be a folder").optional(),
});

const http = z.strictObject({
  ...common,
  type: z.enum(["http", "sse"], 'must be "http" or "sse" if there is a url').optional(),
  url: z.string("must be an address").refine(isWebAddress, "must be an address that starts with https:// or http://"),
  headers: values().default({}),
  oauth: z
    .strictObject({
      clientId: z.string("must be a string").min(1, "must not be empty"),
      clientSecret: z.string("must be a string").min(1, "must not be empty"),
      issuer: z.string("must be an address").refine(isWebAddress, "must be the address of the authorization server"),
      scope: z.string("must be a string").optional(),
    })
    .optional(),
});

/**
 * Parses an `mcp.json`. In each string, replaces `${NAME}` with the environment variable, and `${NAME:-text}` with the
 * variable or the default. Skips servers that are `disabled` (without reading them) or have a problem.
 */
function readMcpSettings(json: string, env: Environment): McpSettings {
  let parsed: unknown;
  try {
    parsed = JSON.parse(json.replace(/^\uFEFF/, ""));
  } catch {
    return toUnread("is not valid JSON");
  }
  const entries = readEntries(parsed);
  if (entries === undefined) return toUnread('must be an object whose "mcpServers" or "servers" is an object');
  if (entries.length > MAX_SERVERS)
    return toUnread(`has ${entries.length} servers; at most ${MAX_SERVERS} are allowed`);
  const refused: string[] = [];
  const names = toServerNames(entries.map(([given]) => given));
  const servers = entries.flatMap(([given, value], index) => {
    if (isObject(value) && (value["disabled"] === true || value["enabled"] === false)) return [];
    const found: string[] = [];
    const server = readServer(names[index] ?? "", given, fillIn(value, env, given, found), env, found);
    refused.push(...found);
    return server === undefined || found.length > 0 ? [] : [server];
  });
  return { servers, problems: [], refused };
}

function toUnread(problem: string): McpSettings {
  return { servers: [], problems: [problem], refused: [] };
}

/** VS Code names the list `servers`. */
function readEntries(parsed: unknown): [string, unknown][] | undefined {
  const file = isObject(parsed) ? parsed : {};
  const servers = [file["mcpServers"], file["servers"]].find(isObject);
  return servers && Object.entries(servers);
}

/** Makes the names unique and valid as prefixes of tool names. If a name must change, its last part stays. */
function toServerNames(given: readonly string[]): string[] {
  const plain = given.map((name) => {
    if (SERVER_NAME.test(name)) return name;
    const last = name.replace(/\/+$/, "").split("/").at(-1) ?? "";
    return last.replace(/[^a-z0-9]+/gi, "-").replace(/^-|-$/g, "");
  });
  return plain.map((name, index) => {
    const whole = given[index] ?? "";
    const isFree = name === whole || plain.filter((other) => other.toLowerCase() === name.toLowerCase()).length === 1;
    if (name !== "" && name.length <= MAX_SERVER_NAME_CHARS && isFree) return name;
    const hash = createHash("sha256").update(whole).digest("hex").slice(0, HASH_CHARS);
    const beginning = name.slice(0, MAX_SERVER_NAME_CHARS - HASH_CHARS - 1).replace(/[-_]$/, "");
    return `${beginning || "server"}-${hash}`;
  });
}

function readServer(
  name: string,
  given: string,
  entry: unknown,
  environment: Environment,
  problems: string[],
): McpServerConfig | undefined {
  const value = isObject(entry) ? toOwnFields(entry) : entry;
  const at = JSON.stringify(given);
  if (!isObject(value) || "command" in value === "url" in value) {
    problems.push(`server ${at}: needs either "command" or "url"`);
    return undefined;
  }
  const result = "command" in value ? stdio.safeParse(value) : http.safeParse(value);
  if (!result.success) {
    const known = Object.keys("command" in value ? stdio.shape : http.shape);
    problems.push(...result.error.issues.map((issue) => `server ${at}: ${describeIssue(issue, known)}`));
    return undefined;
  }
  const { data } = result;
  return {
    name,
    transport: "command" in data ? toStdio(data, environment) : toHttp(data),
    allow: data.tools.allow,
    deny: data.tools.deny,
    channels: data.channels,
    approve: data.approve,
    timeoutMs: data.timeoutSeconds * 1_000,
  };
}

function toStdio({ command, args, env, cwd }: z.output<typeof stdio>, environment: Environment): McpTransport {
  const network = NETWORK.flatMap((name) => {
    const value = environment[name];
    return value ? [[name, value] as const] : [];
  });
  return { type: "stdio", command, args, env: { ...Object.fromEntries(network), ...env }, cwd };
}

function toHttp({ type, url, headers, oauth }: z.output<typeof http>): McpTransport {
  const usual = new URL(url).pathname.endsWith("/sse") ? "sse" : "http";
  return { type: type ?? usual, url, headers, oauth: oauth && { ...oauth, scope: oauth.scope } };
}

function toOwnFields(entry: Record<string, unknown>): Record<string, unknown> {
  const isIgnored = (key: string) => PASSED_OVER.has(key) || /^(?:[_$]|\/\/)/.test(key);
  const kept = Object.entries(entry).filter(([key, value]) => value !== null && !isIgnored(key));
  const { timeout, includeTools, excludeTools, disabledTools, enabled: _, ...own } = Object.fromEntries(kept);
  for (const [alias, field] of Object.entries(ALIASES)) {
    if (alias in own) own[field] = own[alias];
    delete own[alias];
  }
  const kind = typeof own["type"] === "string" ? own["type"].toLowerCase().replace(/[-_ ]/g, "") : "";
  if (kind !== "") own["type"] = KINDS[kind] ?? kind;
  if (timeout !== undefined) own["timeoutSeconds"] ??= typeof timeout === "number" ? toSeconds(timeout) : timeout;
  own["tools"] = toOwnTools(includeTools ?? own["tools"] ?? {}, [excludeTools ?? [], disabledTools ?? []].flat());
  return own;
}

/** Converts a list of allowed tools, in which `*` allows all, and adds `alsoDenied` to the denied tools. */
function toOwnTools(given: unknown, alsoDenied: readonly unknown[]): unknown {
  const tools = Array.isArray(given) ? (given.includes("*") ? {} : { allow: given }) : given;
  if (!isObject(tools) || alsoDenied.length === 0) return tools;
  return { ...tools, deny: [tools["deny"] ?? [], alsoDenied].flat(2) };
}

function toSeconds(timeout: number): number {
  const seconds = timeout >= MIN_TIMEOUT_MS ? timeout / 1_000 : timeout;
  return Math.min(MAX_TIMEOUT_SECONDS, Math.max(1, seconds));
}

function describeIssue(issue: z.core.$ZodIssue, known: readonly string[]): string {
  const path = issue.path.join(".");
  if (issue.code !== "unrecognized_keys") return `${path} ${issue.message}`;
  return issue.keys
    .map((key) => {
      const near = issue.path.length === 0 ? known.filter((name) => isNear(key, name)) : [];
      const name = [...issue.path, key].join(".");
      return `${name} is not known${near.length === 0 ? "" : `; did you mean ${near.join(" or ")}?`}`;
    })
    .join(", ");
}

function isNear(key: string, name: string): boolean {
  return name.startsWith(key) || editDistance(key, name) <= MAX_SLIPS;
}

/** Replaces the variables in every string, at any depth. An unset variable is a problem. */
function fillIn(value: unknown, env: Environment, server: string, problems: string[]): unknown {
  if (typeof value === "string") {
    const [editors] = EDITORS_VARIABLE.exec(value) ?? [];
    if (editors !== undefined) {
      problems.push(
        `server ${JSON.stringify(server)}: ${editors}…} works only in an editor; use an environment variable instead`,
      );
    }
    return value.replace(VARIABLE, (_, name: string, otherwise: string | undefined) => {
      const found = env[name] || otherwise;
      if (found === undefined) problems.push(`server ${JSON.stringify(server)}: the variable ${name} is not set`);
      return found ?? "";
    });
  }
  if (Array.isArray(value)) return value.map((item) => fillIn(item, env, server, problems));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fillIn(item, env, server, problems)]));
}

export function secretsOfMcp({ transport }: McpServerConfig): string[] {
  if (transport.type === "stdio") {
    // The address of a proxy or a registry is secret only if it contains a password.
    const isSecret = ([name, value]: [string, string]) => !NETWORK.includes(name) || value.includes("@");
    return Object.entries(transport.env)
      .filter(isSecret)
      .map(([, value]) => value);
  }
  const { headers, oauth } = transport;
  const given = Object.values(headers).flatMap((value) => [value, value.replace(/^\S+\s+/, "")]);
  return oauth === undefined ? given : [...given, oauth.clientSecret];
}

function texts() {
  return z.array(text(), "must be a list of strings");
}

function values() {
  return z.record(z.string(), text(), "must be an object of strings");
}

/** A string. Also accepts numbers and booleans, because some files write a port or a switch without quotation marks. */
function text() {
  return z.union([z.string(), z.number(), z.boolean()], "must be a string").transform(String);
}

function isWebAddress(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && (url.protocol === "https:" || url.protocol === "http:");
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns a file's text. Throws if the file cannot be read. */
export type ReadText = (path: string) => string;

export const DEFAULT_MCP_CONFIG = "./mcp.json";

/** Reads the file with the tool servers. At the default path, the file can be missing. */
export function readMcpFile(path: string, env: Environment, readText: ReadText): McpSettings {
  let json: string;
  try {
    json = readText(path);
  } catch (error) {
    const isAbsent =
      path === DEFAULT_MCP_CONFIG && error instanceof Error && "code" in error && error.code === "ENOENT";
    return isAbsent
      ? { servers: [], problems: [], refused: [] }
      : toUnread("must be the path of a file that can be read");
  }
  return readMcpSettings(json, env);
}
