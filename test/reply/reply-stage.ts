/** A reply on a channel that can be looked at, written from a script. */
import { SinkError } from "../../src/port/errors.ts";
import type { Closing } from "../../src/reply/drafts.ts";
import { type ProduceText, type ReplyOptions } from "../../src/reply/reply.ts";
import { fakePlatform } from "../support/fake-platform.ts";
import { createQuickScheduler } from "../support/quick-scheduler.ts";

export type Scripted = string | Promise<unknown> | Error;

/** Events of a turn: text, a promise to wait for, an error that cuts it. */
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
  /** Null: the reply is left to somebody else. */
  closing?: Closing | null;
}

export function setUp({
  maxLength = 2_000,
  maxMessages,
  posted = [],
  closing = { note: "", buttons: [] },
}: SetUp = {}) {
  const platform = fakePlatform({ maxLength, ...(maxMessages !== undefined && { maxMessages }) });
  const scheduler = createQuickScheduler();
  const saved: string[][] = [];
  const refusals: Array<SinkError["kind"]> = [];
  const options: ReplyOptions = {
    sink: platform.sink,
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
