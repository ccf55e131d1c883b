import { createChanges } from "../support/changes.ts";
import { createApi, type Novelty, type Streaming } from "./api.ts";
import { createAssistant } from "./assistant.ts";
import { type Clock, createClock } from "./clock.ts";
import { type Core, createIds, createTimestamps } from "./core.ts";
import { createDispatcher, type Transport } from "./delivery.ts";
import type { Dialect } from "./dialect.ts";
import { createEvents, DEFAULT_EVENTS } from "./events.ts";
import { createFaults } from "./faults.ts";
import { createFileRoutes } from "./file-routes.ts";
import { createInteractions } from "./interactions.ts";
import { DEFAULT_LIMITS, type Limits } from "./limits.ts";
import { createMessages } from "./messages.ts";
import type { Methods } from "./method.ts";
import { createAssistantMethods } from "./methods/assistant.ts";
import { createChatMethods } from "./methods/chat.ts";
import { createConversationMethods } from "./methods/conversations.ts";
import { createFileMethods } from "./methods/files.ts";
import { createOAuthMethods } from "./methods/oauth.ts";
import { createPeopleMethods } from "./methods/people.ts";
import { createSearch, createSearchMethods } from "./methods/search.ts";
import { createStreamMethods } from "./methods/streams.ts";
import { createViewMethods } from "./methods/views.ts";
import { createOAuth } from "./oauth.ts";
import { createResponseUrls } from "./response-urls.ts";
import { startServer } from "./server.ts";
import { createSocketMode } from "./socket-mode.ts";
import { createViews } from "./views.ts";
import { createViolations } from "./violations.ts";
import { createWatchdog } from "./watchdog.ts";

export interface SimulatorOptions {
  clock?: Clock;
  /** Limits that differ from the defaults. `perMinute` also contains only the differences. */
  limits?: Partial<Limits>;
  streaming?: Streaming;
  /** Events that the app subscribes to; default: those in the manifest. */
  events?: readonly string[];
  dialect?: Dialect;
  /** Default: any free port. */
  port?: number;
}

export async function startSimulator({
  clock = createClock(),
  limits,
  streaming = "on",
  ...options
}: SimulatorOptions) {
  const { events, dialect = "usual", port = 0 } = options;
  const changes = createChanges();
  const newId = createIds();
  const violations = createViolations(clock.now, changes.changed);
  const state = {
    streaming,
    unknown: new Set<Novelty>(),
    sealed: undefined as string | undefined,
    transport: undefined as Transport | undefined,
  };
  const server = await startServer(() => ({ api: api.handle, page: oauth.page, files, urls, socketMode }), port);
  const core: Core = {
    clock,
    changes,
    violations,
    limits: { ...DEFAULT_LIMITS, ...limits, perMinute: { ...DEFAULT_LIMITS.perMinute, ...limits?.perMinute } },
    app: {
      id: newId("A"),
      name: "Palaver",
      appToken: "xapp-1-simulator",
      signingSecret: "simulator-signing-secret",
      clientId: "1.2",
      clientSecret: "simulator-client-secret",
      events: new Set(events ?? DEFAULT_EVENTS),
    },
    workspaces: new Map(),
    organisations: new Map(),
    newId,
    newTs: createTimestamps(clock.now),
    origin: () => server.origin,
    emit: (workspace, event, about) => appEvents.emit(workspace, event, about),
  };
  const socketMode = createSocketMode(core);
  const dispatcher = createDispatcher({ ...core, transport: () => state.transport ?? socketMode });
  const appEvents = createEvents({ app: core.app, dispatcher, newId, now: clock.now, dialect });
  const assistant = createAssistant(core);
  const watchdog = createWatchdog(violations);
  const search = createSearch(core);
  const messages = createMessages(core, watchdog, assistant, search);
  const views = createViews(core);
  const urls = createResponseUrls(core, messages);
  const files = createFileRoutes(core);
  const oauth = createOAuth(core);
  const interactions = createInteractions(core, { dispatcher, views, urls, watchdog });
  const faults = createFaults();
  const deps = { core, messages };
  const methods: Methods = {
    ...createAssistantMethods({ ...deps, assistant }),
    ...createChatMethods(deps),
    ...createConversationMethods(deps),
    ...createFileMethods(deps),
    ...createOAuthMethods({ ...deps, oauth }),
    ...createPeopleMethods(deps),
    ...createSearchMethods({ ...deps, search }),
    ...createStreamMethods(deps),
    ...createViewMethods({ ...deps, views }),
    "apps.connections.open": { scopes: [], token: "app", run: () => ({ url: socketMode.newUrl() }) },
  };
  const isUnknown = (novelty: Novelty) => state.unknown.has(novelty);
  const ways = { streaming: () => state.streaming, isUnknown, sealed: () => state.sealed };
  const api = createApi({ core, methods, faults, ...ways, dialect });

  async function close(): Promise<void> {
    dispatcher.close();
    clock.close();
    changes.close();
    socketMode.close();
    await server.close();
  }

  const parts = { core, state, socketMode, dispatcher, appEvents, assistant, watchdog, messages, search, views, files };
  return { ...parts, interactions, faults, oauth, api, close };
}

export type Simulator = Awaited<ReturnType<typeof startSimulator>>;
