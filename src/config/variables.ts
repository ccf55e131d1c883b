import { isIP, isIPv6 } from "node:net";
import { z } from "zod";
import { IMAGE_APIS } from "../gateway/image-ways.ts";
import { parseJson } from "../gateway/json.ts";
import { DEFAULT_MCP_CONFIG } from "./mcp-servers.ts";

const DEFAULT_SYSTEM_PROMPT =
  "You are a helpful assistant in a team's chat. Answer in the language you are written to, briefly and plainly, in Markdown.";

/** Length of the key that encrypts installations with AES-256. */
const KEY_BYTES = 32;
const MIN_STATE_SECRET_CHARS = 16;

const LOOPBACK_NAMES = ["localhost", "127.0.0.1", "[::1]", "::1"];

/** True for a host name or address of this machine only; an IPv6 address may have its brackets. */
export function isLoopback(host: string): boolean {
  return LOOPBACK_NAMES.includes(host.toLowerCase()) || (isIP(host) === 4 && host.startsWith("127."));
}

/** Everything the environment may say. Messages complete "VARIABLE …" and never quote the value: it may be a secret in the wrong place. */
export const variables = {
  GATEWAY_BASE_URL: gatewayAddress().optional(),
  GATEWAY_API_KEY: secret().optional(),
  GATEWAY_IMAGE_KEY_HEADER: z
    .string()
    .regex(/^x-[a-z0-9]+(-[a-z0-9]+)*-api-key$/i, "must be a header name of the form x-<vendor>-api-key")
    .transform((name) => name.toLowerCase())
    .optional(),
  GATEWAY_HEADERS: headers().optional(),
  GATEWAY_EXTRA_BODY: z.string().optional(),
  GATEWAY_EXTRA_BODY_FILE: z.string().optional(),
  GATEWAY_FALLBACK_BASE_URL: gatewayAddress().optional(),
  GATEWAY_FALLBACK_API_KEY: secret().optional(),
  GATEWAY_PORT: z.string().optional(),
  CHAT_MODEL: modelId().optional(),
  CHAT_FALLBACK_MODEL: modelId().optional(),
  IMAGE_MODEL: modelId().optional(),
  IMAGE_API: choice("auto", ...IMAGE_APIS).default("auto"),
  SYSTEM_PROMPT: z.string().default(DEFAULT_SYSTEM_PROMPT),
  SLACK_BOT_TOKEN: slackToken(/^(xoxe\.)?xoxb-/, "a bot token (xoxb-…), found under OAuth & Permissions").optional(),
  SLACK_APP_TOKEN: slackToken(/^xapp-/, "an app-level token (xapp-…), found under Basic Information").optional(),
  SLACK_SIGNING_SECRET: secret()
    .refine(
      (text) => !/^x(ox|app-)/.test(text),
      "must be the signing secret under Basic Information, but a token was given",
    )
    .optional(),
  SLACK_API_URL: z
    .string()
    .refine(isWebAddress, "must be an address that begins with https:// or http://, without a password or a query")
    .refine((url) => url.endsWith("/api/"), "must end in /api/, with the slash")
    .optional(),
  SLACK_CLIENT_ID: z
    .string()
    .regex(/^\d+\.\d+$/, "must be the client id under Basic Information: two numbers with a point between them")
    .optional(),
  SLACK_CLIENT_SECRET: secret().optional(),
  SLACK_STATE_SECRET: secret().min(MIN_STATE_SECRET_CHARS, needsChars(MIN_STATE_SECRET_CHARS)).optional(),
  ENCRYPTION_KEY: secret()
    .refine((text) => keyBytes(text)?.length === KEY_BYTES, `must be ${KEY_BYTES} bytes, written in base64 or in hex`)
    .transform((text) => keyBytes(text) ?? new Uint8Array())
    .optional(),
  SLACK_ALLOWED_BOTS: list(/^[BUWA][A-Z0-9]+$/, "must be ids of bots (B…) or of their users (U…), with commas between"),
  DISCORD_TOKEN: secret()
    .refine((text) => !/^Bot\b/i.test(text), 'must be the token alone, without "Bot" before it')
    .refine((text) => !/^\d+$/.test(text), "must be the bot's token, but an application id was given")
    .refine((text) => !/^[0-9a-f]{64}$/i.test(text), "must be the bot's token, but a public key was given")
    .optional(),
  // The library adds the version itself.
  DISCORD_API_URL: webAddress()
    .transform((url) => url.replace(/\/v\d+$/, ""))
    .optional(),
  DISCORD_THREADS: choice("auto", "on", "off").default("auto"),
  DISCORD_GUILD_ID: z
    .string()
    .regex(/^\d{17,20}$/, "must be a server's id: 17 to 20 digits")
    .optional(),
  SHARDS: list(/^\d{1,5}$/, "must be numbers of shards with commas between, like 0,1").transform((ids) =>
    ids.map(Number),
  ),
  SHARD_COUNT: wholeNumber(1, 99_999).optional(),
  REDIS_URL: z
    .string()
    .refine(
      (url) => isAddress(url, ["redis:", "rediss:"]),
      "must be an address of the form redis://host:6379, or rediss:// with TLS",
    )
    .optional(),
  DATA_DIR: z.string().default("./data"),
  HOST: z
    .string()
    .regex(/^[\w.:-]+$/, "must be a host name or an address alone, without a scheme or a path")
    .refine((host) => !host.includes(":") || isIP(host) === 6, "must be without a port: that is PORT")
    .default("127.0.0.1"),
  PORT: wholeNumber(0, 65_535).default(3000),
  PUBLIC_URL: webAddress()
    .refine(
      (url) => url.startsWith("https:") || isLoopback(hostOf(url)),
      "must begin with https://, except on this machine itself",
    )
    .optional(),
  MCP_CONFIG: z.string().default(DEFAULT_MCP_CONFIG),
  POLICY_FILE: z.string().optional(),
  FETCH_URL_HOSTS: list(
    /^(\*\.)?([a-z0-9-]+\.)+[a-z0-9-]*[a-z][a-z0-9-]*$|^https?:\/\/[\w.:[\]-]+$/i,
    "must be hosts like docs.example.com or *.example.com, or origins like http://wiki.internal:8080, with commas between",
    // Only a parser knows which ports and addresses there are.
    (part) => !part.includes("://") || URL.canParse(part),
  ),
  METRICS_TOKEN: secret().min(16, needsChars(16)).optional(),
  RELAY_SECRETS: list(/^[\x21-\x7e]{32,}$/, "must be keys of at least 32 characters each, with commas between"),
  IMAGINE_MAX_REFERENCES: wholeNumber(1, 16).default(8),
  LOCAL_CHAT: choice("auto", "on", "off").default("auto"),
  CONSOLE_CHAT: choice("off", "on").default("off"),
  LOCAL_PASSWORD: z.string().min(8, needsChars(8)).optional(),
  ADMIN_PASSWORD: z.string().min(12, needsChars(12)).optional(),
  ADMIN_TRUSTED_PROXY: z
    .string()
    .transform((text) => text.split(",").map((part) => part.trim()))
    .refine(
      (networks) => networks.every(isNetwork),
      "must be addresses or networks like 10.0.0.0/8, with commas between",
    )
    .optional(),
  ADMIN_USER_HEADER: z
    .string()
    .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/i, "must be the name of a header, like x-forwarded-user")
    .transform((name) => name.toLowerCase())
    .optional(),
  BOT_NAME: z.string().max(80, "must have at most 80 characters").default("Palaver"),
  ROLE: choice("all", "ingress", "worker").default("all"),
  LOG_LEVEL: choice("trace", "debug", "info", "warn", "error", "fatal", "silent").default("info"),
  DELETED_QUESTIONS: choice("offer", "remove").default("offer"),
  HISTORY_TTL_DAYS: wholeNumber(1, 3650).default(30),
  HISTORY_MAX_MESSAGES: wholeNumber(1, 10_000).default(60),
  HISTORY_MAX_TOKENS: wholeNumber(256, 10_000_000).default(16_000),
  CONTEXT_MESSAGES: wholeNumber(0, 100).default(15),
  MAX_CONCURRENT_TURNS: wholeNumber(1, 10_000).default(16),
  SHUTDOWN_GRACE_SECONDS: wholeNumber(0, 3600).default(25),
};

/** An address of the web, its trailing slashes taken off, so that paths can be appended. */
function webAddress() {
  return z
    .string()
    .refine(isWebAddress, "must be an address that begins with https:// or http://, without a password or a query")
    .transform((url) => url.replace(/\/+$/, ""));
}

/** Many servers are documented with the version in their address; Palaver adds /v1 and /v1beta itself. */
/** Headers by their names. A header is a token and a line of visible ASCII, see RFC 9110, section 5. */
const headerFields = z.record(z.string().regex(/^[\w!#$%&'*+.^`|~-]+$/), z.string().regex(/^[\x20-\x7e]*$/));

function headers() {
  return z.string().transform((text, context) => {
    const { data } = headerFields.safeParse(parseJson(text));
    if (data !== undefined) return data;
    const message = 'must be a JSON object of header names and texts, like {"x-portkey-provider":"openai"}';
    context.addIssue({ code: "custom", message });
    return z.NEVER;
  });
}

function gatewayAddress() {
  return webAddress().transform((url) => url.replace(/\/v1(beta)?$/, ""));
}

function isWebAddress(text: string): boolean {
  return (
    isAddress(text, ["https:", "http:"]) && !/[?#]/.test(text) && new URL(text).username + new URL(text).password === ""
  );
}

function isAddress(text: string, protocols: string[]): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url !== undefined && protocols.includes(url.protocol) && url.hostname !== "" && !/\s/.test(text);
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname : "";
}

function secret() {
  return z.string().regex(/^[\x21-\x7e]+$/, "must be the key alone: it holds a blank or a character that no key has");
}

/** Bytes from 64 hexadecimal digits, else from base64 in either alphabet; undefined when it is neither. */
function keyBytes(text: string): Uint8Array | undefined {
  if (/^[0-9a-f]{64}$/i.test(text)) return Uint8Array.from(Buffer.from(text, "hex"));
  return /^[\w+/-]+={0,2}$/.test(text) ? Uint8Array.from(Buffer.from(text, "base64")) : undefined;
}

/** Each entry once, in its order; empty when the variable is unset. */
function list(entry: RegExp, message: string, isValid: (part: string) => boolean = () => true) {
  return z
    .string()
    .default("")
    .transform((text) => [...new Set(text.split(",").map((part) => part.trim()))].filter((part) => part !== ""))
    .refine((entries) => entries.every((part) => entry.test(part) && isValid(part)), message);
}

/** An address, or one with the length of its prefix. */
function isNetwork(text: string): boolean {
  const [address = "", length, ...rest] = text.split("/");
  if (isIP(address) === 0 || rest.length > 0) return false;
  return length === undefined || (/^\d{1,3}$/.test(length) && Number(length) <= (isIPv6(address) ? 128 : 32));
}

function needsChars(count: number): string {
  return `must have at least ${count} characters`;
}

function slackToken(shape: RegExp, wanted: string) {
  return secret().check(({ value, issues }) => {
    if (shape.test(value)) return;
    issues.push({
      code: "custom",
      input: value,
      message: `must be ${wanted}, but ${describeSlackToken(value)} was given`,
    });
  });
}

function describeSlackToken(token: string): string {
  if (/^(xoxe\.)?xoxb-/.test(token)) return "a bot token (xoxb-)";
  if (/^(xoxe\.)?xoxp-/.test(token)) return "a user token (xoxp-)";
  if (token.startsWith("xapp-")) return "an app-level token (xapp-)";
  if (token.startsWith("xoxe-")) return "a refresh token (xoxe-)";
  if (/^xox[a-z]-/.test(token)) return `another kind of token (${token.slice(0, 5)})`;
  return "something else";
}

function modelId() {
  return z.string().regex(/^[^\s?#]+$/, "must be a model's id, without blanks");
}

function choice<const T extends string>(...values: T[]) {
  return z.enum(values, `must be one of ${values.join(", ")}`);
}

function wholeNumber(min: number, max: number) {
  const message = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,12}$/, message)
    .transform(Number)
    .refine((value) => value >= min && value <= max, message);
}
