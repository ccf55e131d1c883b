import { createHash } from "node:crypto";
import { z } from "zod";
import { editDistance } from "../text/edit-distance.ts";

/** A server of the Model Context Protocol, as `mcp.json` describes it, with its variables filled in. */
export interface McpServerConfig {
  /** Begins the names of its tools. */
  name: string;
  transport: McpTransport;
  /** Tools that are offered; undefined: all but those that `deny` names. */
  allow: readonly string[] | undefined;
  deny: readonly string[];
  /** Places that are offered its tools, each `{platform}` or `{platform}:{channel}`; undefined: all. */
  channels: readonly string[] | undefined;
  /** The calls that need a person's approval: all, those that may change something, or none. */
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
      /** Streamable HTTP, or what came before it: a stream of events. */
      type: "http" | "sse";
      url: string;
      headers: Readonly<Record<string, string>>;
      oauth: McpOauth | undefined;
    };

/** Client credentials with which a server's own authorization server gives out tokens. */
export interface McpOauth {
  clientId: string;
  clientSecret: string;
  /** The only authorization server that is told the secret. */
  issuer: string;
  scope: string | undefined;
}

export interface McpSettings {
  servers: readonly McpServerConfig[];
  /** Everything that is wrong with the file as such, each in one sentence without any value. */
  problems: readonly string[];
  /** Problems of servers that are left out. */
  refused: readonly string[];
}

type Environment = Readonly<Record<string, string | undefined>>;

/** With a tool's name they make a name of at most 64 characters. */
const SERVER_NAME = /^[a-z0-9]+(?:[-_][a-z0-9]+)*$/i;
const MAX_SERVER_NAME_CHARS = 24;
const HASH_CHARS = 6;
const MAX_TIMEOUT_SECONDS = 600;
/** Other clients measure `timeout` in milliseconds or in seconds. A smaller number is one of seconds. */
const MIN_TIMEOUT_MS = 1_000;
const MAX_SERVERS = 50;
/** Letters in which a misspelt field differs from a known one. */
const MAX_SLIPS = 2;
/** Some programs write `env:` before the name. */
const VARIABLE = /\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;
/** Placeholders that only an editor can fill in. */
const EDITORS_VARIABLE = /\$\{(?:input:|command:|config:|workspaceFolder|userHome)/;
/** Ignored fields of other clients: descriptions, and permissions that are not theirs to give here. */
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
/** Other clients' words for a field, the preferred one last. */
const ALIASES = { serverUrl: "url", httpUrl: "url", transportType: "type", transport: "type" } as const;
/** Their words for a kind of server, without signs and in small letters. */
const KINDS: Readonly<Record<string, string>> = {
  local: "stdio",
  remote: "http",
  streamable: "http",
  streamablehttp: "http",
};

const common = {
  disabled: z.boolean("must be true or false").default(false),
  tools: z.strictObject({ allow: texts().optional(), deny: texts().default([]) }).default({ deny: [] }),
  channels: z
    .array(z.string().regex(/^[a-z]+(:[^\s:]+)?$/), 'must be a list of places such as "slack:C0123456789" or "local"')
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
  type: z.literal("stdio", 'must be "stdio" where there is a command').optional(),
  command: z.string("must be the program that is the server").min(1, "must be the program that is the server"),
  args: texts().default([]),
  env: values().default({}),
  cwd: z.string("must be a folder").optional(),
});

const http = z.strictObject({
  ...common,
  type: z.enum(["http", "sse"], 'must be "http" or "sse" where there is an url: no other kind is spoken').optional(),
  url: z.string("must be an address").refine(isWebAddress, "must be an address that begins with https:// or http://"),
  headers: values().default({}),
  oauth: z
    .strictObject({
      clientId: z.string("must be a text").min(1, "must not be empty"),
      clientSecret: z.string("must be a text").min(1, "must not be empty"),
      issuer: z.string("must be an address").refine(isWebAddress, "must be the address of the authorization server"),
      scope: z.string("must be a text").optional(),
    })
    .optional(),
});

/**
 * Reads the text of an `mcp.json`. `${NAME}` in any text of it stands for a variable of the environment, `${NAME:-text}`
 * for that or a text. A server that is `disabled` is left out unread, and so is one with a problem.
 */
function readMcpSettings(json: string, env: Environment): McpSettings {
  let parsed: unknown;
  try {
    parsed = JSON.parse(json.replace(/^\uFEFF/, ""));
  } catch {
    return toUnread("is not valid JSON");
  }
  const entries = readEntries(parsed);
  if (entries === undefined) return toUnread('must be an object with "mcpServers" or "servers", an object');
  if (entries.length > MAX_SERVERS) return toUnread(`has ${entries.length} servers; ${MAX_SERVERS} are the most`);
  const refused: string[] = [];
  const names = toServerNames(entries.map(([given]) => given));
  const servers = entries.flatMap(([given, value], index) => {
    if (isObject(value) && (value["disabled"] === true || value["enabled"] === false)) return [];
    const found: string[] = [];
    const server = readServer(names[index] ?? "", given, fillIn(value, env, given, found), found);
    refused.push(...found);
    return server === undefined || found.length > 0 ? [] : [server];
  });
  return { servers, problems: [], refused };
}

function toUnread(problem: string): McpSettings {
  return { servers: [], problems: [problem], refused: [] };
}

/** VS Code names them `servers`. */
function readEntries(parsed: unknown): [string, unknown][] | undefined {
  const file = isObject(parsed) ? parsed : {};
  const servers = [file["mcpServers"], file["servers"]].find(isObject);
  return servers && Object.entries(servers);
}

/** Names that can begin those of tools, each another one. A name that has to change tells its last part. */
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

function readServer(name: string, given: string, entry: unknown, problems: string[]): McpServerConfig | undefined {
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
    transport: "command" in data ? toStdio(data) : toHttp(data),
    allow: data.tools.allow,
    deny: data.tools.deny,
    channels: data.channels,
    approve: data.approve,
    timeoutMs: data.timeoutSeconds * 1_000,
  };
}

function toStdio({ command, args, env, cwd }: z.output<typeof stdio>): McpTransport {
  return { type: "stdio", command, args, env, cwd };
}

function toHttp({ type, url, headers, oauth }: z.output<typeof http>): McpTransport {
  const usual = new URL(url).pathname.endsWith("/sse") ? "sse" : "http";
  return { type: type ?? usual, url, headers, oauth: oauth && { ...oauth, scope: oauth.scope } };
}

/** An entry of another client, in the words that are used here. */
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

/** A list allows its tools, and `*` all of them. Anything that is neither a list nor an object is refused later. */
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

/** Fills in the variables of every text, however deep. A name that is not set becomes a problem. */
function fillIn(value: unknown, env: Environment, server: string, problems: string[]): unknown {
  if (typeof value === "string") {
    const [editors] = EDITORS_VARIABLE.exec(value) ?? [];
    if (editors !== undefined) {
      problems.push(
        `server ${JSON.stringify(server)}: ${editors}…} is for an editor to fill in; name a variable instead`,
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

/** Every value of a server's configuration that must never be shown. */
export function secretsOfMcp({ transport }: McpServerConfig): string[] {
  if (transport.type === "stdio") return Object.values(transport.env);
  const { headers, oauth } = transport;
  const given = Object.values(headers).flatMap((value) => [value, value.replace(/^\S+\s+/, "")]);
  return oauth === undefined ? given : [...given, oauth.clientSecret];
}

function texts() {
  return z.array(text(), "must be a list of texts");
}

function values() {
  return z.record(z.string(), text(), "must be an object of texts");
}

/** Some write a port or a switch as a number or a truth. */
function text() {
  return z.union([z.string(), z.number(), z.boolean()], "must be a text").transform(String);
}

function isWebAddress(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && (url.protocol === "https:" || url.protocol === "http:");
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Throws when the file cannot be read. */
export type ReadText = (path: string) => string;

/** The path of the file unless the configuration names another one. */
export const DEFAULT_MCP_CONFIG = "./mcp.json";

/** Reads the file of the servers. There need be none at the default place. */
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
