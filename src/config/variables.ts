import { isIP, isIPv6 } from "node:net";
import { z } from "zod";
import { IMAGE_APIS } from "../gateway/image-ways.ts";
import { parseJson } from "../gateway/json.ts";
import {
  choice,
  encryptionKey,
  isAddress,
  isLoopback,
  list,
  needsChars,
  secret,
  webAddress,
  wholeNumber,
} from "../port/variables.ts";
import { DEFAULT_MCP_CONFIG } from "./mcp-servers.ts";

const DEFAULT_SYSTEM_PROMPT =
  "You are a helpful assistant in a team's chat. Answer in the language of the message, briefly and plainly, in Markdown.";

/**
 * The core's variables. Each message continues a sentence that starts with the variable's name. Messages never quote
 * the value, because it can be a secret in the wrong variable.
 */
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
  REDIS_URL: z
    .string()
    .refine(
      (url) => isAddress(url, ["redis:", "rediss:"]),
      "must be an address of the form redis://host:6379, or rediss:// with TLS",
    )
    .optional(),
  ENCRYPTION_KEY: encryptionKey().optional(),
  DATA_DIR: z.string().default("./data"),
  HOST: z
    .string()
    .regex(/^[\w.:-]+$/, "must be only a host name or an address, without a scheme or a path")
    .refine((host) => !host.includes(":") || isIP(host) === 6, "must not have a port: PORT sets it")
    .default("127.0.0.1"),
  PORT: wholeNumber(0, 65_535).default(3000),
  PUBLIC_URL: webAddress()
    .refine(
      (url) => url.startsWith("https:") || isLoopback(hostOf(url)),
      "must start with https://, except on this machine",
    )
    .optional(),
  MCP_CONFIG: z.string().default(DEFAULT_MCP_CONFIG),
  POLICY_FILE: z.string().optional(),
  FETCH_URL_HOSTS: list(
    /^(\*\.)?([a-z0-9-]+\.)+[a-z0-9-]*[a-z][a-z0-9-]*$|^https?:\/\/[\w.:[\]-]+$/i,
    "must be hosts like docs.example.com or *.example.com, or origins like http://wiki.internal:8080, separated by commas",
    // Only a parser can tell which ports and addresses are valid.
    (part) => !part.includes("://") || URL.canParse(part),
  ),
  METRICS_TOKEN: secret().min(16, needsChars(16)).optional(),
  RELAY_SECRETS: list(/^[\x21-\x7e]{32,}$/, "must be keys of at least 32 characters each, separated by commas"),
  IMAGINE_MAX_REFERENCES: wholeNumber(1, 16).default(8),
  ADMIN_PASSWORD: z.string().min(12, needsChars(12)).optional(),
  ADMIN_TRUSTED_PROXY: z
    .string()
    .transform((text) => text.split(",").map((part) => part.trim()))
    .refine(
      (networks) => networks.every(isNetwork),
      "must be addresses or networks like 10.0.0.0/8, separated by commas",
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

/** Headers by name. Names and values follow RFC 9110, section 5. */
const headerFields = z.record(z.string().regex(/^[\w!#$%&'*+.^`|~-]+$/), z.string().regex(/^[\x20-\x7e]*$/));

function headers() {
  return z.string().transform((text, context) => {
    const { data } = headerFields.safeParse(parseJson(text));
    if (data !== undefined) return data;
    const message = 'must be a JSON object of header names and values, like {"x-portkey-provider":"openai"}';
    context.addIssue({ code: "custom", message });
    return z.NEVER;
  });
}

/**
 * Removes the version from an address, because Palaver adds /v1 or /v1beta itself. Many servers' documentation includes
 * the version.
 */
function gatewayAddress() {
  return webAddress().transform((url) => url.replace(/\/v1(beta)?$/, ""));
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname : "";
}

/** True for an IP address, with or without a prefix length. */
function isNetwork(text: string): boolean {
  const [address = "", length, ...rest] = text.split("/");
  if (isIP(address) === 0 || rest.length > 0) return false;
  return length === undefined || (/^\d{1,3}$/.test(length) && Number(length) <= (isIPv6(address) ? 128 : 32));
}

function modelId() {
  return z.string().regex(/^[^\s?#]+$/, "must be a model's id, without spaces");
}
