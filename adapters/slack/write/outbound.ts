import type { Adapter } from "../../../src/port/adapter.ts";
import type { ReplyAddress } from "../../../src/port/events.ts";
import type { ReplySink } from "../../../src/port/sink.ts";
import type { SlackApi } from "../api/client.ts";
import type { Workspaces } from "../api/workspaces.ts";
import { createToMark } from "../ids.ts";
import { createFileStore } from "./file-store.ts";
import { createFiles } from "./files.ts";
import { createLookup } from "./lookup.ts";
import { createWholeWriter } from "./post-and-update.ts";
import type { Running } from "./running.ts";
import { createSink } from "./sink.ts";
import { createMemory } from "./sink-state.ts";
import { createUploader } from "./upload.ts";

export interface OutboundDeps {
  api: SlackApi;
  workspaces: Pick<Workspaces, "find">;
  /** The key of what marks the bot's own messages; a secret, and the same in every run. */
  markKey: string;
  /** Web API base that ends in `/api/`; Slack's own when absent. */
  apiUrl: string | undefined;
  running: Pick<Running, "note">;
  /** See `FileStoreDeps`. */
  looksMs?: readonly number[] | undefined;
  /** Unix milliseconds. */
  now(): number;
}

/** The half of the adapter that writes, and reads files. What its replies have to know of each other is kept here. */
export interface Outbound extends Pick<Adapter, "openAttachment"> {
  sink(address: ReplyAddress): ReplySink;
}

export function createOutbound({ api, workspaces, markKey, apiUrl, running, looksMs, now }: OutboundDeps): Outbound {
  const memory = createMemory(now);
  const toMark = createToMark(markKey);
  const whole = createWholeWriter({ api, memory, toMark });
  const lookup = createLookup({ api, workspaces, toMark, now });
  const uploader = createUploader({ store: createFileStore({ api, apiUrl, looksMs }), whole, lookup, memory, toMark });
  const deps = {
    api,
    apiUrl,
    whole,
    uploader,
    lookup,
    memory,
    toMark,
    running,
    now,
  };
  return {
    sink: (address) => createSink(address, deps),
    openAttachment: createFiles({ api, apiUrl }).open,
  };
}
