import { setTimeout as sleep } from "node:timers/promises";
import type {
  Client,
  Tool as ListedTool,
  OAuthClientProvider,
  Prompt,
  Resource,
  StoredOAuthTokens,
  Transport,
} from "@modelcontextprotocol/client";
import type { Logger } from "pino";
import packageFile from "../../package.json" with { type: "json" };
import type { McpOauth, McpServerConfig } from "../config/mcp-servers.ts";
import { LoggableError } from "../port/errors.ts";
import { truncate } from "../text/truncate.ts";
import { createFloodGate } from "./flood.ts";
import { type ReadPage, readList } from "./listing.ts";
import { openProgram, type ProgramTransport } from "./program.ts";
import { type OnFault, repairError, repairResult } from "./repair.ts";
import { createServerFetch } from "./server-fetch.ts";
import type { TokenStore } from "./tokens.ts";

/** Timeout for the version probe. Old programs do not respond to it. */
const PROBE_MS = 10_000;
const MAX_PROMPTS = 50;
const CLOSE_MS = 5_000;
const MAX_LINE_CHARS = 200;

/** Names an older, stateful revision of the protocol. */
const OLDER = { kind: "legacy" } as const;

export interface Offer {
  tools: readonly ListedTool[];
  prompts: readonly Prompt[];
  hasResources: boolean;
}

export type Sdk = typeof import("@modelcontextprotocol/client");

export interface Session {
  sdk: Sdk;
  client: Client;
  /** Resolves to the reason when the connection ends. */
  ended: Promise<LoggableError>;
  end(reason: LoggableError): void;
  list(): Promise<Offer>;
  listResources(signal: AbortSignal): Promise<Resource[]>;
  /** Ends the session and stops the server's program. Never rejects. */
  close(): Promise<void>;
}

export interface SessionOptions {
  config: McpServerConfig;
  /** Called when the server reports changed tools or prompts. */
  onChanged(session: Session): void;
  onError(error: unknown): void;
  onFault: OnFault;
  /** Absent: tokens last only for this session. */
  tokens: TokenStore | undefined;
  /** Timeout for both attempts together, including the time in which npx downloads the program. */
  connectMs: number;
  log: Logger;
}

/** Connects to a server. If the server is unreachable, rejects and leaves nothing running. */
export async function openSession(options: SessionOptions, signal: AbortSignal): Promise<Session> {
  // Loaded on demand, because loading takes 0.3 s.
  const sdk = await import("@modelcontextprotocol/client");
  const { type } = options.config.transport;
  const until = performance.now() + options.connectMs;
  // Skip the version probe, because the SSE transport is older than the probe.
  if (type === "sse") return connect(sdk, options, OLDER, until, signal);
  try {
    return await connect(sdk, options, undefined, until, signal);
  } catch (error) {
    if (signal.aborted || !isProbeFailure(error, sdk)) throw error;
    // Try without the probe: if any request precedes `initialize`, some programs exit, and some servers respond with
    // 5xx or not at all.
    return connect(sdk, options, OLDER, until, signal);
  }
}

function isProbeFailure(error: unknown, { SdkError, SdkErrorCode }: Sdk): boolean {
  if (!(error instanceof SdkError)) return false;
  const isProbeTimeout = error.code === SdkErrorCode.RequestTimeout && error.message.includes("probe");
  return error.code === SdkErrorCode.EraNegotiationFailed || isProbeTimeout;
}

/** Negotiates the protocol revision, unless `known` names an older revision. */
async function connect(
  sdk: Sdk,
  options: SessionOptions,
  known: typeof OLDER | undefined,
  until: number,
  signal: AbortSignal,
): Promise<Session> {
  const { onChanged, onError, log, config } = options;
  const { name: server } = config;
  const ended = Promise.withResolvers<LoggableError>();
  const transport = await openTransport(sdk, options);
  let session: Session | undefined;
  const client = createClient(sdk, Math.min(PROBE_MS, options.connectMs / 2), (error) => {
    // Ignore changes while the session connects, because everything is listed right afterwards.
    if (error === null && session !== undefined) onChanged(session);
  });
  // Assign the handlers directly, because neither object has `addEventListener`.
  Object.assign(client, {
    onclose: () => ended.resolve(endOf(transport) ?? new LoggableError("its connection ended")),
    onerror: (error: unknown) => {
      onError(error);
      // The SDK reopens a stream without a handshake, so the server would reject all messages on it.
      if (error instanceof sdk.SseError) void close();
    },
  });
  const close = async () => {
    await Promise.race([client.close().catch(() => {}), sleep(CLOSE_MS, undefined, { ref: false })]);
  };
  try {
    await client.connect(transport, { timeout: Math.max(1, until - performance.now()), signal, prior: known });
  } catch (error) {
    await close();
    const end = endOf(transport);
    if (known === undefined && isProbeFailure(error, sdk)) throw error;
    throw end ?? (isTimeout(error, sdk) ? toSilence(transport, options.connectMs) : error);
  }
  guard(transport, options, () => ended.resolve(new LoggableError("it sends too much")));
  const walk = <T>(name: string, readPage: ReadPage<T>, signal: AbortSignal) => {
    const onTruncated = (err: unknown) => {
      log.warn({ server, list: name, err }, "a tool server's list was truncated: only its beginning is used");
    };
    return readList(readPage, onTruncated, signal);
  };
  const bypass = { cacheMode: "bypass" } as const;
  const listTools: ReadPage<ListedTool> = async (cursor, limits) => {
    const page = await client.listTools({ cursor }, { ...bypass, ...limits });
    return { items: page.tools, page };
  };
  const listPrompts: ReadPage<Prompt> = async (cursor, limits) => {
    const page = await client.listPrompts({ cursor }, { ...bypass, ...limits });
    return { items: page.prompts, page };
  };
  const listResources: ReadPage<Resource> = async (cursor, limits) => {
    const page = await client.listResources({ cursor }, { ...bypass, ...limits });
    return { items: page.resources, page };
  };
  session = {
    sdk,
    client,
    ended: ended.promise,
    end: ended.resolve,
    async list() {
      const offered = client.getServerCapabilities();
      const tools = offered?.tools === undefined ? [] : await walk("tools", listTools, signal);
      // A server whose prompts cannot be listed can still provide tools.
      const prompts = offered?.prompts && (await walk("prompts", listPrompts, signal).catch(onError));
      return { tools, prompts: (prompts ?? []).slice(0, MAX_PROMPTS), hasResources: offered?.resources !== undefined };
    },
    listResources: (signal) => walk("resources", listResources, signal),
    close,
  };
  return session;
}

/** Declares no capabilities, so the server can neither query our model nor see our files. */
function createClient({ Client }: Sdk, probeMs: number, onChanged: (error: Error | null) => void): Client {
  return new Client(
    { name: "palaver", version: packageFile.version },
    {
      versionNegotiation: { mode: "auto", probe: { timeoutMs: probeMs } },
      listChanged: { tools: { autoRefresh: false, onChanged }, prompts: { autoRefresh: false, onChanged } },
      // Does not compile the server's schemas, so the server's regular expressions never run in this process.
      jsonSchemaValidator: {
        getValidator: () => (input) => ({ valid: true, data: input as never, errorMessage: undefined }),
      },
    },
  );
}

function isTimeout(error: unknown, { SdkError, SdkErrorCode }: Sdk): boolean {
  return error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout;
}

function toSilence(transport: Transport | ProgramTransport, connectMs: number): LoggableError {
  const words = `it did not answer within ${Math.round(connectMs / 1000)} s`;
  const quote = "lastLine" in transport ? transport.lastLine() : "";
  return quote === "" ? new LoggableError(words) : new LoggableError(`${words}; its last line`, { quote });
}

function endOf(transport: Transport | ProgramTransport): LoggableError | undefined {
  return "end" in transport ? transport.end : undefined;
}

async function openTransport(sdk: Sdk, { config, tokens, log }: SessionOptions): Promise<Transport | ProgramTransport> {
  const { name, transport } = config;
  if (transport.type !== "stdio") {
    const { type, url, oauth } = transport;
    const authProvider = oauth && createProvider(sdk, config, oauth, tokens);
    const Transport = type === "sse" ? sdk.SSEClientTransport : sdk.StreamableHTTPClientTransport;
    return new Transport(new URL(url), {
      fetch: createServerFetch(transport),
      ...(authProvider && { authProvider }),
    });
  }
  const { getDefaultEnvironment } = await import("@modelcontextprotocol/client/stdio");
  return openProgram({
    program: transport,
    // Passes only PATH, HOME and similar variables to the program, plus those in the configuration.
    env: getDefaultEnvironment(),
    onWords: (text) => log.trace({ server: name, text: truncate(text, MAX_LINE_CHARS) }, "output of a tool server"),
  });
}

/** Provides client credentials. With a store, the tokens outlive the session. */
function createProvider(
  { ClientCredentialsProvider }: Sdk,
  config: McpServerConfig,
  { clientId, clientSecret, issuer, scope }: McpOauth,
  store: TokenStore | undefined,
): OAuthClientProvider {
  const options = { clientId, clientSecret, expectedIssuer: issuer, ...(scope !== undefined && { scope }) };
  const provider: OAuthClientProvider = new ClientCredentialsProvider(options);
  // Always use the configured authorization server: it receives the secret, so the tool server must not choose it.
  provider.discoveryState = () => ({ authorizationServerUrl: issuer });
  if (store === undefined) return provider;
  let known: StoredOAuthTokens | undefined;
  provider.tokens = async () => known ?? (known = await store.read(config));
  provider.saveTokens = (given) => {
    known = given;
    return store.keep(config, given);
  };
  return provider;
}

/** Repairs a server's results. Disconnects a server that sends too much, before it uses all processor time. */
function guard(transport: Transport, { onFault }: SessionOptions, onFlood: () => void): void {
  const deliver = transport.onmessage;
  const mayGoOn = createFloodGate();
  const onmessage: Transport["onmessage"] = (message, extra) => {
    if (!mayGoOn(0)) return onFlood();
    if ("result" in message) Object.assign(message, { result: repairResult(message.result, onFault) });
    if ("error" in message) Object.assign(message, { error: repairError(message.error) });
    deliver?.(message, extra);
  };
  Object.assign(transport, { onmessage });
}
