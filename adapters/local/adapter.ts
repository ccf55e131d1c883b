import { Hono } from "hono";
import { HTTPException } from "hono/http-exception";
import type { Logger } from "pino";
import { hasLeft } from "../../src/http/bindings.ts";
import { checkHost, checkOrigin, hardenHeaders } from "../../src/http/page-access.ts";
import { requirePassword } from "../../src/http/password.ts";
import type { Adapter } from "../../src/port/adapter.ts";
import type { GatewayNotice } from "../../src/port/catalogue.ts";
import type { Accept } from "../../src/port/events.ts";
import { MAX_REASON_CHARS } from "../../src/port/events.ts";
import { AwayError, isDiskTrouble, RequestError } from "./errors.ts";
import { createForgetting } from "./forget.ts";
import { createAssets } from "./hear/assets.ts";
import { createChatActions } from "./hear/chats.ts";
import { createUserActions } from "./hear/listener.ts";
import { createRoutes, MAX_TEXT_LENGTH } from "./hear/routes.ts";
import { createSearch } from "./hear/search.ts";
import { createSetupRoutes } from "./hear/setup.ts";
import { PLATFORM } from "./ids.ts";
import { EXAMPLES, type LocalAdapterOptions } from "./options.ts";
import { createChatList } from "./store/chats.ts";
import { createFiles, MAX_FILE_BYTES, MAX_FILES, openFile } from "./store/files.ts";
import { createMessages } from "./store/messages.ts";
import { createOutbox, type Outbox } from "./store/outbox.ts";
import { openTables } from "./store/tables.ts";
import { createEventStream } from "./write/event-stream.ts";
import { createSink } from "./write/sink.ts";

export interface LocalAdapter extends Adapter {
  /** Serves `/`, `/assets/*` and `/local/*`. Mount it at the root of the process's HTTP server. */
  readonly app: Hono;
  /** Shows the gateway's problem on every page instead of "Connected". Undefined removes it. */
  showGateway(problem: GatewayNotice | undefined): void;
}

const ACCEPT_NOTED_MS = 30_000;

/**
 * The page in the browser, for one person and the bot. This adapter is also the platform: it stores all chats, messages
 * and files in the given database.
 */
export function createLocalAdapter(options: LocalAdapterOptions): LocalAdapter {
  const { database, botName, log, commands } = options;
  const tables = openTables(database);
  const [chats, messages, files] = [createChatList(tables), createMessages(tables), createFiles(tables)];
  const canDraw = options.imagine !== undefined;
  const eventStream = createEventStream(tables, chats, messages, {
    epoch: tables.epoch,
    botName,
    commands: [...commands],
    examples: (options.examples ?? EXAMPLES).filter(({ prompt }) => canDraw || !prompt.startsWith("/imagine")),
    maxFileBytes: MAX_FILE_BYTES,
    maxFiles: MAX_FILES,
    maxTextLength: MAX_TEXT_LENGTH,
    maxReasonLength: MAX_REASON_CHARS,
    canDraw,
    isSandbox: options.isSandbox === true,
    isShared: options.password !== undefined,
    hasPreviews: options.preview !== undefined,
    hasPersona: options.readPersona !== undefined,
  });
  const outbox = createOutbox({ tables, chats, messages, changed: eventStream.changed });
  let accept: Accept | undefined;
  const stores = { tables, chats, messages, files, outbox, eventStream, now: Date.now };
  const deps = { ...options, ...stores, changed: eventStream.changed, accept: () => accept };
  const [userActions, chatActions] = [createUserActions(deps), createChatActions(deps)];
  const checkOpen = () => {
    if (accept === undefined) throw new AwayError();
  };
  const routes = createRoutes({ ...options, ...stores, userActions, chatActions, checkOpen });

  return {
    platform: PLATFORM,
    isOwn: true,
    app: createApp(options, routes),
    showGateway: eventStream.setGateway,
    async listen(given) {
      files.dropOrphans(Date.now());
      await deliverNoted(outbox, given, log);
      accept = given;
    },
    sink: (address) => createSink(address, stores),
    openAttachment: (ref) => openFile(files, ref),
    isThere: async (_, { channelId }) => chats.find(channelId) !== undefined,
    isConnected: () => accept !== undefined,
    ...createForgetting(stores),
    // Everyone who opens the page can read all of it.
    mayShow: async (id) => id.startsWith(`${PLATFORM}:`),
    search: createSearch({ ...stores, botName }),
    async pause() {
      accept = undefined;
    },
    async close() {
      accept = undefined;
      eventStream.close();
    },
  };
}

/** Passes on the events that an earlier process stored but could not pass on. */
async function deliverNoted(outbox: Outbox, accept: Accept, log: Logger): Promise<void> {
  for (const key of outbox.keys()) {
    try {
      await outbox.deliver(key, accept, ACCEPT_NOTED_MS);
    } catch (err) {
      log.error(
        { err, key },
        "the queue did not accept an event from the local page; it is offered again at the next start",
      );
    }
  }
}

/** Checks requests to the page's own paths. Other routes of the server have their own checks. */
function createApp(options: LocalAdapterOptions, routes: Hono): Hono {
  const { allowedHosts, password, browserKey, setup, adminPassword, log } = options;
  const app = new Hono();
  const hint = "Sign in with any user name and the password in LOCAL_PASSWORD.";
  const checkPassword =
    password !== undefined && requirePassword({ password, browserKey, hint, name: "password of the local page", log });
  for (const path of ["/", "/assets/*", "/local/*"]) {
    app.use(path, hardenHeaders, checkHost(allowedHosts));
    if (checkPassword) app.use(path, checkPassword);
    app.use(path, checkOrigin);
  }
  app.route("/", createAssets());
  app.route("/local/setup", createSetupRoutes({ setup, hasPassword: password !== undefined, adminPassword, log }));
  app.route("/local", routes);
  app.onError((error, c) => {
    if (hasLeft(c)) return c.body(null, 400);
    if (error instanceof RequestError) {
      if (error.status === 503) log.warn({ err: error }, "a request from the local page could not be accepted");
      if (error instanceof AwayError) c.header("Retry-After", "2");
      return c.json({ error: error.message, field: error.field }, error.status);
    }
    if (error instanceof HTTPException) return error.getResponse();
    if (isDiskTrouble(error)) {
      log.error(
        { err: error },
        "a request of the local page could not be stored: the disk of DATA_DIR accepts no writes",
      );
      return c.json({ error: "The server's storage is unavailable. Try again in a moment." }, 503);
    }
    log.error({ err: error }, "a request from the local page failed");
    return c.json({ error: "Something went wrong on the server. Its log has the details." }, 500);
  });
  return app;
}
