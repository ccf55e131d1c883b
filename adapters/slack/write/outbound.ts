import type { Adapter } from "../../../src/port/adapter.ts";
import type { ReplyAddress } from "../../../src/port/events.ts";
import type { ReplySink } from "../../../src/port/sink.ts";
import { readExtra, type SlackExtra } from "../address.ts";
import type { SlackApi } from "../api/client.ts";
import type { Workspaces } from "../api/workspaces.ts";
import { createToMark, readMessageId, readUserId } from "../ids.ts";
import type { SlackAdapterOptions } from "../options.ts";
import { createEphemeralSink } from "./ephemeral.ts";
import { createFileStore } from "./file-store.ts";
import { createFiles } from "./files.ts";
import { createLookup, type ReplyPlace } from "./lookup.ts";
import { createPostAndUpdateWriter } from "./post-and-update.ts";
import { createSink } from "./sink.ts";
import { createSinkState } from "./sink-state.ts";
import { createUploader } from "./upload.ts";
import { createMarkWaiting } from "./waiting-mark.ts";

export interface OutboundDeps extends Pick<SlackAdapterOptions, "markKey" | "apiUrl" | "pollPausesMs" | "now"> {
  api: SlackApi;
  workspaces: Pick<Workspaces, "find">;
}

/** The half of the adapter that writes, and reads files. It holds the state that its replies share. */
export interface Outbound extends Pick<Adapter, "openAttachment"> {
  sink(address: ReplyAddress): ReplySink;
}

export function createOutbound(options: OutboundDeps): Outbound {
  const { api, workspaces, markKey, apiUrl, pollPausesMs, now } = options;
  const state = createSinkState(now);
  const toMark = createToMark(markKey);
  const postAndUpdate = createPostAndUpdateWriter({ api, state, toMark });
  const lookup = createLookup({ api, workspaces, toMark, now });
  const store = createFileStore({ api, apiUrl, pollPausesMs });
  const uploader = createUploader({ store, postAndUpdate, lookup, state, toMark });
  const markWaiting = createMarkWaiting({ api, state, now });
  const deps = { api, apiUrl, postAndUpdate, uploader, lookup, markWaiting, state, toMark, now };

  return {
    sink(address) {
      const { channelId, visibleTo } = address;
      const extra = readExtra(address);
      const place = toPlace(address, extra);
      // In a direct conversation nobody else sees anything, and messages last, unlike ephemeral ones.
      const isAlone = channelId.startsWith("D") && extra.responseUrl === undefined;
      if (visibleTo === undefined || isAlone) return createSink(place, extra, deps);
      return createEphemeralSink(place, readUserId(visibleTo), extra, deps);
    },
    openAttachment: createFiles({ api, apiUrl }).open,
  };
}

function toPlace({ channelId, threadId, replyToId }: ReplyAddress, { team, cameAt }: SlackExtra): ReplyPlace {
  const questionTs = replyToId === undefined ? undefined : readMessageId(replyToId)?.ts;
  const cameAtMs = cameAt === undefined ? undefined : Number(cameAt);
  return { teamId: team, channelId, threadTs: threadId, questionTs, cameAtMs };
}
