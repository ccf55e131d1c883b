import { createHash } from "node:crypto";
import type { StoredOAuthTokens } from "@modelcontextprotocol/client";
import type { Keyv } from "keyv";
import type { Logger } from "pino";
import { z } from "zod";
import type { McpServerConfig } from "../config/mcp-servers.ts";
import type { Seal } from "../port/seal.ts";

/** Stored tokens expire after this time without use by any process. */
const TTL_MS = 30 * 24 * 3_600_000;

/** Stores encrypted OAuth tokens for later starts and for other processes. Never rejects. */
export interface TokenStore {
  /** Resolves to undefined if no readable token is stored. */
  read(config: McpServerConfig): Promise<StoredOAuthTokens | undefined>;
  keep(config: McpServerConfig, tokens: StoredOAuthTokens): Promise<void>;
}

const stored: z.ZodType<StoredOAuthTokens> = z.looseObject({ access_token: z.string(), token_type: z.string() });

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
        return typeof sealed === "string" ? stored.parse(JSON.parse(seal.open(key, sealed))) : undefined;
      } catch (err) {
        log.warn({ err, server: config.name }, "could not read the token of a tool server; requesting a new one");
        return undefined;
      }
    },
    async keep(config, tokens) {
      const key = toKey(config);
      try {
        await keyv.set(key, seal.close(key, JSON.stringify(tokens)), TTL_MS);
      } catch (err) {
        log.warn({ err, server: config.name }, "could not store the token of a tool server");
      }
    },
  };
}

/** Returns a separate key for each address and each set of credentials. */
function toKey({ name, transport }: McpServerConfig): string {
  const { url, oauth } = transport.type === "stdio" ? { url: "", oauth: undefined } : transport;
  const from = JSON.stringify([url, oauth?.issuer, oauth?.clientId, oauth?.scope]);
  return `${name}:${createHash("sha256").update(from).digest("base64url").slice(0, 22)}`;
}
