import { setImmediate } from "node:timers/promises";
import type { Hono } from "hono";
import type { Adapter } from "../../src/port/adapter.ts";
import type { Accept } from "../../src/port/events.ts";
import { type AcknowledgementDeps, createTakeDelivery, type Interactions } from "./act/acknowledgement.ts";
import { createInteractions } from "./act/dispatch.ts";
import { readExtra } from "./address.ts";
import type { SlackApi } from "./api/client.ts";
import { codeOf } from "./api/error.ts";
import { toAttachments } from "./api/files.ts";
import type { Workspaces } from "./api/workspaces.ts";
import { createIsThere } from "./hear/access.ts";
import { createDelivery, type Delivery } from "./hear/delivery.ts";
import { createReadLimits, createReadsEarlier, type ReadsEarlier } from "./hear/earlier.ts";
import { createListener, createOtherBots, createTitleThread } from "./hear/listener.ts";
import { createPeople } from "./hear/people.ts";
import { createReadsRecent } from "./hear/recent.ts";
import { createSearch } from "./hear/search.ts";
import { createTransport } from "./hear/transport.ts";
import { readUserId } from "./ids.ts";
import type { SingleWorkspace } from "./install/single-workspace.ts";
import type { SlackAdapterOptions } from "./options.ts";
import { createTellPerson } from "./write/notice.ts";

/** The half of the adapter that receives: events, interactions and earlier messages. */
export interface Incoming
  extends ReadsEarlier,
    Required<Pick<Adapter, "listen" | "pause" | "isConnected" | "findAuthor" | "isThere" | "namePlace" | "search">>,
    Required<Pick<Adapter, "listReadable" | "readRecent">> {
  /** Routes for the HTTP server. Undefined in Socket Mode. */
  app: Hono | undefined;
  /** Can be called without `listen`, or before `listen`. */
  redrawHome: Interactions["redrawHome"];
}

export interface IncomingParts {
  api: SlackApi;
  /** With a single token, `open` asks Slack for the token's workspace. */
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
      if (delivery === undefined) throw new Error("This process no longer accepts events.");
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
    async onUninstalled(id, atMs, how) {
      if (options.onUninstalled !== undefined) await options.onUninstalled(id, atMs, how);
      else if (how !== "withdrawn" && workspaces.sole?.()?.teamId === id) options.onFatal(REMOVED);
    },
  });
  const tell: AcknowledgementDeps["tell"] = ({ reply, author }, workspace, words) => {
    const { channelId, threadId: threadTs } = reply;
    const { responseUrl } = readExtra(reply);
    return tellPerson({ workspace, person: { id: readUserId(author.id) }, channelId, threadTs, responseUrl }, words);
  };
  const reads = { ...inbound, api, workspaces, limits: createReadLimits(now), now };
  const take = createTakeDelivery({ workspaces, delivery: () => delivery, listener, interactions, tell, log });
  const transport = createTransport({ ...options, take });

  return {
    app: transport.app,
    redrawHome: interactions.redrawHome,
    async listen(accept: Accept) {
      await workspaces.open?.(closing.signal);
      delivery = createDelivery(accept);
      await transport.open();
    },
    isConnected: () => delivery !== undefined && transport.isReady(),
    ...createReadsEarlier(reads),
    ...createReadsRecent(reads),
    search: createSearch({ api, workspaces, people }),
    async findAuthor(personId, { workspaceId, channelId }, signal) {
      const workspace = await workspaces.find(workspaceId ?? "", signal);
      if (workspace === undefined) return undefined;
      try {
        return await people.readAuthor(workspace, readUserId(personId), channelId, signal);
      } catch (error) {
        if (codeOf(error) === "user_not_found") return undefined;
        throw error;
      }
    },
    isThere: createIsThere({ api, workspaces }),
    async namePlace({ workspaceId, channelId }, signal) {
      const workspace = await workspaces.find(workspaceId ?? "", signal);
      return workspace === undefined ? {} : people.namePlace(workspace, channelId);
    },
    async pause() {
      closing.abort(new Error("The adapter no longer accepts events."));
      const stopping = delivery;
      delivery = undefined;
      // Waits one more turn of the event loop, so that events that were just stored are acknowledged.
      await stopping?.stop();
      await setImmediate();
      await transport.close();
    },
  };
}

const REMOVED =
  "The bot was removed from its Slack workspace, or its token was revoked. Install it again, copy the new token to SLACK_BOT_TOKEN, and restart.";
