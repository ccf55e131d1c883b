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

/** Longest until a server answers; a program may have to be downloaded first. */
const CONNECT_MS = 60_000;
/** Longest that a server is asked whether it speaks the newest revision; a program that is silent does not. */
const PROBE_MS = 10_000;
const MAX_PROMPTS = 50;
const CLOSE_MS = 5_000;
const MAX_LINE_CHARS = 200;

/** A revision before the stateless one. */
const OLDER = { kind: "legacy" } as const;

export interface Offer {
  tools: readonly ListedTool[];
  prompts: readonly Prompt[];
  hasResources: boolean;
}

export type Sdk = typeof import("@modelcontextprotocol/client");

/** One connection to a server, from its beginning to its end. */
export interface Session {
  sdk: Sdk;
  client: Client;
  /** Resolves to the reason. */
  ended: Promise<LoggableError>;
  end(reason: LoggableError): void;
  list(): Promise<Offer>;
  listResources(signal: AbortSignal): Promise<Resource[]>;
  /** Ends the server's program too. Never rejects. */
  close(): Promise<void>;
}

export interface SessionOptions {
  config: McpServerConfig;
  /** The server says that it offers other things than before. */
  onChanged(session: Session): void;
  onError(error: unknown): void;
  onFault: OnFault;
  /** Absent: tokens are kept for as long as the session lasts. */
  tokens: TokenStore | undefined;
  log: Logger;
}

/** Connects to a server. Rejects when it cannot be reached, and leaves nothing behind then. */
export async function openSession(options: SessionOptions, signal: AbortSignal): Promise<Session> {
  // Loaded where it is needed: it takes 0.3 s.
  const sdk = await import("@modelcontextprotocol/client");
  const { type } = options.config.transport;
  // The stream of events is older than the question.
  if (type === "sse") return connect(sdk, options, OLDER, signal);
  try {
    return await connect(sdk, options, undefined, signal);
  } catch (error) {
    if (signal.aborted || !isProbeFailure(error, sdk)) throw error;
    // Some programs end, and some servers answer 5xx or nothing, if they are asked anything before `initialize`.
    return connect(sdk, options, OLDER, signal);
  }
}

function isProbeFailure(error: unknown, { SdkError, SdkErrorCode }: Sdk): boolean {
  if (!(error instanceof SdkError)) return false;
  const isProbeTimeout = error.code === SdkErrorCode.RequestTimeout && error.message.includes("probe");
  return error.code === SdkErrorCode.EraNegotiationFailed || isProbeTimeout;
}

/** Asks a server for its revision, unless `known` tells that it is an older one. */
async function connect(
  sdk: Sdk,
  options: SessionOptions,
  known: typeof OLDER | undefined,
  signal: AbortSignal,
): Promise<Session> {
  const { onChanged, onError, log, config } = options;
  const { name: server } = config;
  const ended = Promise.withResolvers<LoggableError>();
  const transport = await openTransport(sdk, options);
  let session: Session | undefined;
  const client = createClient(sdk, (error) => {
    // What changes while it is connected to is listed right afterwards.
    if (error === null && session !== undefined) onChanged(session);
  });
  // Neither is an event target.
  Object.assign(client, {
    onclose: () => ended.resolve(endOf(transport) ?? new LoggableError("its connection has ended")),
    onerror: (error: unknown) => {
      onError(error);
      // A stream that the SDK opens again by itself has not shaken hands: the server refuses all that is asked there.
      if (error instanceof sdk.SseError) void close();
    },
  });
  const close = async () => {
    await Promise.race([client.close().catch(() => {}), sleep(CLOSE_MS, undefined, { ref: false })]);
  };
  try {
    await client.connect(transport, { timeout: CONNECT_MS, signal, prior: known });
  } catch (error) {
    await close();
    const end = endOf(transport);
    throw end === undefined || (known === undefined && isProbeFailure(error, sdk)) ? error : end;
  }
  guard(transport, options, () => ended.resolve(new LoggableError("it sends too much")));
  const walk = <T>(name: string, readPage: ReadPage<T>, signal: AbortSignal) => {
    const onCut = (err: unknown) => {
      log.warn({ server, list: name, err }, "a tool server's list is cut short: only its beginning is used");
    };
    return readList(readPage, onCut, signal);
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
      // A failure to list the prompts must not cost the tools.
      const prompts = offered?.prompts && (await walk("prompts", listPrompts, signal).catch(onError));
      return { tools, prompts: (prompts ?? []).slice(0, MAX_PROMPTS), hasResources: offered?.resources !== undefined };
    },
    listResources: (signal) => walk("resources", listResources, signal),
    close,
  };
  return session;
}

/** It can neither ask a model through us nor see our files: nothing of that is offered to it. */
function createClient({ Client }: Sdk, onChanged: (error: Error | null) => void): Client {
  return new Client(
    { name: "palaver", version: packageFile.version },
    {
      versionNegotiation: { mode: "auto", probe: { timeoutMs: PROBE_MS } },
      listChanged: { tools: { autoRefresh: false, onChanged }, prompts: { autoRefresh: false, onChanged } },
      // A schema of the server's would be made into a program here, and its patterns tried on its own texts.
      jsonSchemaValidator: {
        getValidator: () => (input) => ({ valid: true, data: input as never, errorMessage: undefined }),
      },
    },
  );
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
    // PATH, HOME and the like, and nothing else of ours.
    env: getDefaultEnvironment(),
    onWords: (text) => log.trace({ server: name, text: truncate(text, MAX_LINE_CHARS) }, "a tool server says"),
  });
}

/** Client credentials whose tokens outlive the session where there is a store for them. */
function createProvider(
  { ClientCredentialsProvider }: Sdk,
  config: McpServerConfig,
  { clientId, clientSecret, issuer, scope }: McpOauth,
  store: TokenStore | undefined,
): OAuthClientProvider {
  const options = { clientId, clientSecret, expectedIssuer: issuer, ...(scope !== undefined && { scope }) };
  const provider: OAuthClientProvider = new ClientCredentialsProvider(options);
  // A server must not choose the authorization server, which receives the secret.
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

/** Repairs the results of a server, and ends one that never stops talking before it takes all the time there is. */
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
