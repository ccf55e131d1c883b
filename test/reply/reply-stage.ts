/** A reply on a channel that shows everything, written from a script. */

import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { createQuickScheduler } from "../../lab/support/quick-scheduler.ts";
import { SinkError } from "../../src/port/errors.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import type { Closing } from "../../src/reply/drafts.ts";
import { type ProduceText, type ReplyOptions } from "../../src/reply/reply.ts";

export type Scripted = string | Promise<unknown> | Error;

/** Events of a turn: text, a promise to wait for, or an error that ends it. */
export function events(...steps: Scripted[]): ProduceText {
  return async (onText) => {
    for (const step of steps) {
      if (step instanceof Error) throw step;
      if (typeof step === "string") onText(step);
      else await step;
    }
    return "stop";
  };
}

export interface SetUp {
  maxLength?: number;
  maxMessages?: number;
  posted?: string[];
  /** null: another process continues the reply. */
  closing?: Closing | null;
  traits?: ReplyOptions["sink"]["traits"];
}

export function setUp({
  maxLength = 2_000,
  maxMessages,
  posted = [],
  closing = { note: "", buttons: [] },
  traits,
}: SetUp = {}) {
  const platform = fakePlatform({ maxLength, maxMessages, traits });
  const scheduler = createQuickScheduler();
  const saved: string[][] = [];
  const refusals: Array<SinkError["kind"]> = [];
  const options: ReplyOptions = {
    sink: platform.sink,
    right: NO_RIGHT,
    scheduler,
    record: { id: "turn", posted, removed: 0, isPosting: false, seen: 0 },
    isResumed: false,
    refusal: () => ({ note: "_Not taken._", buttons: [] }),
    onRecord: async () => void saved.push([...posted]),
    onSeen: async () => {},
    onCall: () => {},
    onRefused: (kind) => void refusals.push(kind),
    onVisible: () => {},
    describeWait: () => "waiting for the model",
    onWait: () => {},
    onEnd: () => closing ?? undefined,
  };
  return { ...platform, options, saved, refusals };
}
