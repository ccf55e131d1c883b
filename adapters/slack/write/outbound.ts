import type { Adapter } from "../../../src/port/adapter.ts";
import type { ReplyAddress } from "../../../src/port/events.ts";
import { type Right, withRight } from "../../../src/port/right.ts";
import { readExtra, type SlackExtra } from "../address.ts";
import type { SlackApi } from "../api/client.ts";
import { createFiles } from "../api/files.ts";
import type { Workspaces } from "../api/workspaces.ts";
import { createToMark, readMessageId, readUserId } from "../ids.ts";
import type { SlackAdapterOptions } from "../options.ts";
import { createFileStore, createUploader } from "./files.ts";
import { createLookup, type ReplyPlace } from "./lookup.ts";
import { createPostAndUpdateWriter } from "./post-and-update.ts";
import { createEphemeralSink, type EphemeralSinkDeps } from "./private.ts";
import { createSink, type SinkDeps } from "./sink.ts";
import { createSinkState } from "./sink-state.ts";
import { createMarkWaiting } from "./status.ts";

export interface OutboundDeps extends Pick<SlackAdapterOptions, "markKey" | "apiUrl" | "pollPausesMs" | "now"> {
  api: SlackApi;
  workspaces: Pick<Workspaces, "find">;
}

/** The half of the adapter that writes messages and reads files. It stores the state that replies share. */
export type Outbound = Pick<Adapter, "openAttachment" | "sink">;

export function createOutbound(options: OutboundDeps): Outbound {
  const { api, workspaces, markKey, apiUrl, pollPausesMs, now } = options;
  const state = createSinkState(now);
  const toMark = createToMark(markKey);
  const lookup = createLookup({ api, workspaces, toMark, now });
  const markWaiting = createMarkWaiting({ api, state, now });

  function under(right: Right): SinkDeps & EphemeralSinkDeps {
    const writing = withRight(api, right);
    const postAndUpdate = createPostAndUpdateWriter({ api: writing, state, toMark });
    const store = createFileStore({ api: writing, apiUrl, pollPausesMs });
    const uploader = createUploader({ store, postAndUpdate, lookup, state, toMark });
    return { api: writing, right, apiUrl, postAndUpdate, uploader, lookup, markWaiting, state, toMark, now };
  }

  return {
    sink(address, right) {
      const deps = under(right);
      const { channelId, visibleTo } = address;
      const extra = readExtra(address);
      const place = toPlace(address, extra);
      // Uses ordinary messages in a direct conversation: no one else sees them, and ephemeral messages disappear.
      const isAlone = channelId.startsWith("D") && extra.responseUrl === undefined;
      if (visibleTo === undefined || isAlone) return createSink(place, extra, deps);
      return createEphemeralSink(place, readUserId(visibleTo), extra, deps);
    },
    openAttachment: createFiles({ api, apiUrl }).open,
  };
}

function toPlace({ channelId, threadId, replyToId, since }: ReplyAddress, { team }: SlackExtra): ReplyPlace {
  const questionTs = replyToId === undefined ? undefined : readMessageId(replyToId)?.ts;
  return { teamId: team, channelId, threadTs: threadId, questionTs, cameAtMs: since };
}
