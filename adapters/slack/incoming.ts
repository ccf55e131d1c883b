import { setImmediate } from "node:timers/promises";
import type { Hono } from "hono";
import type { Adapter } from "../../src/port/adapter.ts";
import type { Accept } from "../../src/port/events.ts";
import { readExtra } from "./address.ts";
import { toAttachments } from "./api/attachments.ts";
import type { SlackApi } from "./api/client.ts";
import type { Workspaces } from "./api/workspaces.ts";
import { readUserId } from "./ids.ts";
import type { SingleWorkspace } from "./install/single-workspace.ts";
import { createInteractions } from "./interactions/interactions.ts";
import { createTellPerson } from "./interactions/user-action.ts";
import { createConnection } from "./listen/connection.ts";
import { createDelivery, type Delivery } from "./listen/delivery.ts";
import { createDispatcher, type DispatcherDeps, type Interactions } from "./listen/dispatcher.ts";
import { createReadsEarlier, type ReadsEarlier } from "./listen/earlier.ts";
import { createListener } from "./listen/listener.ts";
import { createOtherBots } from "./listen/other-bots.ts";
import { createTitleThread } from "./listen/titles.ts";
import type { SlackAdapterOptions } from "./options.ts";
import { createPeople } from "./people/people.ts";

/** Everything that Slack tells the bot. */
export interface Incoming
  extends ReadsEarlier,
    Required<Pick<Adapter, "listen" | "pause" | "isConnected" | "findAuthor">> {
  /** To be served on our HTTP server; undefined with sockets. */
  app: Hono | undefined;
  /** Works before `listen`, and without it. */
  redrawHome: Interactions["redrawHome"];
}

export interface IncomingParts {
  api: SlackApi;
  /** With a single token, `open` asks Slack which workspace it belongs to. */
  workspaces: Workspaces & Partial<Pick<SingleWorkspace, "open">>;
}

export function createIncoming(options: SlackAdapterOptions, { api, workspaces }: IncomingParts): Incoming {
  const { log, now, apiUrl, allowedBots = [] } = options;
  const closing = new AbortController();
  let delivery: Delivery | undefined;
  const people = createPeople({ api, log, now, namedGroups: options.namedGroups });
  const { looking } = options;
  const inbound = { people, toAttachments, ...(looking && { looking }) };
  const queue: Pick<Delivery, "enqueue"> = {
    async enqueue(...job) {
      if (delivery === undefined) throw new Error("This process takes no more events.");
      return delivery.enqueue(...job);
    },
  };
  const listener = createListener({
    ...inbound,
    otherBots: createOtherBots(allowedBots, now),
    delivery: queue,
    now,
    isListening: options.isListening,
    titleThread: createTitleThread({ api, log }),
  });
  const tellPerson = createTellPerson({ api, apiUrl });
  const interactions = createInteractions({
    ...options,
    ...inbound,
    api,
    tellPerson,
    findWorkspace: workspaces.find,
    async onUninstalled(teamId, atMs, how) {
      if (options.onUninstalled !== undefined) await options.onUninstalled(teamId, atMs, how);
      else if (workspaces.sole?.()?.teamId === teamId) options.onFatal(REMOVED);
    },
  });
  const tell: DispatcherDeps["tell"] = ({ reply, author }, workspace, words) => {
    const { channelId, threadId: threadTs } = reply;
    const { responseUrl } = readExtra(reply);
    return tellPerson({ workspace, person: { id: readUserId(author.id) }, channelId, threadTs, responseUrl }, words);
  };
  const dispatcher = createDispatcher({ workspaces, delivery: () => delivery, listener, interactions, tell, log });
  const connection = createConnection({ ...options, dispatcher });

  return {
    app: connection.app,
    redrawHome: interactions.redrawHome,
    async listen(accept: Accept) {
      await workspaces.open?.(closing.signal);
      delivery = createDelivery(accept);
      await connection.open();
    },
    isConnected: () => delivery !== undefined && connection.isReady(),
    ...createReadsEarlier({ ...inbound, api, workspaces, now }),
    async findAuthor(personId, { workspaceId, channelId }, signal) {
      const workspace = await workspaces.find(workspaceId ?? "", signal);
      if (workspace === undefined) return undefined;
      const userId = readUserId(personId);
      const found = await people.person(workspace, userId);
      return found && people.toAuthor(workspace, userId, { channelId });
    },
    async pause() {
      closing.abort(new Error("The adapter takes no more events."));
      const stopping = delivery;
      delivery = undefined;
      // One more turn of the loop, so that events just stored are still acknowledged.
      await stopping?.stop();
      await setImmediate();
      await connection.close();
    },
  };
}

const REMOVED =
  "The bot was removed from its Slack workspace, or its token was revoked. Install it again, put the token it has then into SLACK_BOT_TOKEN, and start again.";
