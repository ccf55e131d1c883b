import { createHash } from "node:crypto";
import type { StoredOAuthTokens } from "@modelcontextprotocol/client";
import type { Keyv } from "keyv";
import type { Logger } from "pino";
import type { McpServerConfig } from "../config/mcp-servers.ts";
import type { Seal } from "../port/seal.ts";

/** Tokens that are older are not kept for anybody any more. */
const TTL_MS = 30 * 24 * 3_600_000;

/** Keeps what authorization servers gave out, sealed, over restarts and for other processes. Never rejects. */
export interface TokenStore {
  /** Undefined where none is kept, or it cannot be read. */
  read(config: McpServerConfig): Promise<StoredOAuthTokens | undefined>;
  keep(config: McpServerConfig, tokens: StoredOAuthTokens): Promise<void>;
}

export interface TokenStoreOptions {
  keyv: Keyv;
  seal: Seal;
  log: Logger;
}

export function createTokenStore({ keyv, seal, log }: TokenStoreOptions): TokenStore {
  return {
    async read(config) {
      const key = toKey(config);
      try {
        const sealed: unknown = await keyv.get(key);
        return typeof sealed === "string" ? (JSON.parse(seal.open(key, sealed)) as StoredOAuthTokens) : undefined;
      } catch (err) {
        log.warn(
          { err, server: config.name },
          "the token of a tool server could not be read; another one is asked for",
        );
        return undefined;
      }
    },
    async keep(config, tokens) {
      const key = toKey(config);
      try {
        await keyv.set(key, seal.close(key, JSON.stringify(tokens)), TTL_MS);
      } catch (err) {
        log.warn({ err, server: config.name }, "the token of a tool server could not be kept");
      }
    },
  };
}

/** Another address, or other credentials, have other tokens. */
function toKey({ name, transport }: McpServerConfig): string {
  const { url, oauth } = transport.type === "stdio" ? { url: "", oauth: undefined } : transport;
  const from = JSON.stringify([url, oauth?.issuer, oauth?.clientId, oauth?.scope]);
  return `${name}:${createHash("sha256").update(from).digest("base64url").slice(0, 22)}`;
}
