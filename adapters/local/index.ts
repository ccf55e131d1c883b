import { Hono } from "hono";
import { HTTPException } from "hono/http-exception";
import type { Logger } from "pino";
import { hasLeft } from "../../src/http/bindings.ts";
import { checkHost, checkOrigin, hardenHeaders } from "../../src/http/page-access.ts";
import { requirePassword } from "../../src/http/password.ts";
import type { Adapter } from "../../src/port/adapter.ts";
import type { Accept } from "../../src/port/events.ts";
import { MAX_REASON_CHARS } from "../../src/port/events.ts";
import { AwayError, isDiskTrouble, RequestError } from "./errors.ts";
import { createForgetting } from "./forget.ts";
import { PLATFORM } from "./ids.ts";
import { createAssets } from "./listen/assets.ts";
import { createChats } from "./listen/chats.ts";
import { createRoutes, MAX_TEXT_LENGTH } from "./listen/routes.ts";
import { createSetupRoutes } from "./listen/setup.ts";
import { createUserActions } from "./listen/user-actions.ts";
import { EXAMPLES, type LocalAdapterOptions } from "./options.ts";
import type { GatewayNotice } from "./page/wire.ts";
import { createDirectory } from "./store/directory.ts";
import { createFiles, MAX_FILE_BYTES, MAX_FILES, openFile } from "./store/files.ts";
import { createMessages } from "./store/messages.ts";
import { createOutbox, type Outbox } from "./store/outbox.ts";
import { openTables } from "./store/tables.ts";
import { createEventStream } from "./write/event-stream.ts";
import { createSink } from "./write/sink.ts";

export interface LocalAdapter extends Adapter {
  /** Serves `/`, `/assets/*` and `/local/*`; to be mounted at the root of the process's HTTP server. */
  readonly app: Hono;
  /** Shows the gateway's trouble on every page, in place of "Connected"; undefined when it is over. */
  showGateway(problem: GatewayNotice | undefined): void;
}

const ACCEPT_NOTED_MS = 30_000;

/**
 * The local page: a chat program of its own, in the browser. The adapter is the platform too; it keeps channels,
 * messages and files in tables of the given database, and what people do reaches the core through the port.
 */
export function createLocalAdapter(options: LocalAdapterOptions): LocalAdapter {
  const { database, botName, log, commands } = options;
  const tables = openTables(database, Date.now);
  const [directory, messages, files] = [createDirectory(tables), createMessages(tables), createFiles(tables)];
  const canDraw = options.imagine !== undefined;
  const eventStream = createEventStream(tables, directory, messages, {
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
    hasPreviews: options.preview !== undefined,
    hasPersona: options.readPersona !== undefined,
  });
  const outbox = createOutbox({ tables, directory, messages, changed: eventStream.changed });
  let accept: Accept | undefined;
  const stores = { tables, directory, messages, files, outbox, eventStream, now: Date.now };
  const deps = { ...options, ...stores, changed: eventStream.changed, accept: () => accept };
  const [userActions, chats] = [createUserActions(deps), createChats(deps)];
  const checkOpen = () => {
    if (accept === undefined) throw new AwayError();
  };
  const routes = createRoutes({ ...options, ...stores, userActions, chats, checkOpen });

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
    isConnected: () => accept !== undefined,
    ...createForgetting(stores),
    async pause() {
      accept = undefined;
    },
    async close() {
      accept = undefined;
      eventStream.close();
    },
  };
}

/** Hands over the events that a former process stored and could not hand over. */
async function deliverNoted(outbox: Outbox, accept: Accept, log: Logger): Promise<void> {
  for (const key of outbox.keys()) {
    try {
      await outbox.deliver(key, accept, ACCEPT_NOTED_MS);
    } catch (err) {
      log.error({ err, key }, "An event of the local page was not accepted; it is offered again at the next start.");
    }
  }
}

/** The checks stand on the page's own paths only: other routes of the server have their own. */
function createApp(options: LocalAdapterOptions, routes: Hono): Hono {
  const { allowedHosts, password, browserKey, setup, adminPassword, log } = options;
  const app = new Hono();
  const hint = "A password is needed here: any user name, and the one in LOCAL_PASSWORD.";
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
      if (error.status === 503) log.warn({ err: error }, "A request of the local page could not be taken.");
      if (error instanceof AwayError) c.header("Retry-After", "2");
      return c.json({ error: error.message, field: error.field }, error.status);
    }
    if (error instanceof HTTPException) return error.getResponse();
    if (isDiskTrouble(error)) {
      log.error({ err: error }, "A request of the local page could not be stored: the disk of DATA_DIR takes nothing.");
      return c.json({ error: "The server cannot store anything just now. Try again in a moment." }, 503);
    }
    log.error({ err: error }, "A request of the local page failed.");
    return c.json({ error: "Something went wrong on the server; its log says what." }, 500);
  });
  return app;
}
