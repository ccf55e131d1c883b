import type { Draft, Receipt, ReplySink } from "./adapter.ts";
import { SinkError, type SinkErrorKind } from "./errors.ts";
import type { Answer, Written } from "./pacing/pacer.ts";
import { callPlatform } from "./platform-call.ts";
import { type Closing, createReplyDrafts, type ReplyDrafts } from "./reply-drafts.ts";
import { type TurnRecord, toNonce } from "./turn-record.ts";

export interface ReplyViewOptions {
  sink: ReplySink;
  /** Changes with what is on the platform. */
  record: Pick<TurnRecord, "id" | "posted" | "removed" | "isPosting">;
  /** An earlier run may have posted more than the record says. */
  isResumed: boolean;
  /** Stands in the place of a text that the platform does not take. */
  refusal: Closing;
  /** Called when the record has changed, before anything else is written. */
  onRecord(): Promise<void>;
  /** Told of every call the platform answered, refused or not. */
  onCall(kind: "post" | "edit" | "remove", error: SinkError | undefined): void;
  /** Told once when the platform will not take this reply any more, whatever is tried. */
  onRefused(kind: SinkErrorKind): void;
  /** Longest the platform may take for one call; without it a sensible time. */
  callTimeoutMs?: number;
}

/** The messages of one reply: what they should show, and what they show. */
export interface ReplyView extends Pick<ReplyDrafts, "append" | "text" | "end"> {
  /** Makes the one most urgent call with the newest text. Never rejects; one at a time. */
  write(): Promise<Written>;
  /** Resolves when no call is in flight. */
  settled(): Promise<void>;
}

type Change = { type: "post"; draft: Draft } | { type: "edit"; index: number; draft: Draft } | { type: "remove" };

export function createReplyView(options: ReplyViewOptions): ReplyView {
  const { sink, record, isResumed, refusal, callTimeoutMs } = options;
  const { posted } = record;
  const reply = createReplyDrafts(record.id, sink.limits, refusal);
  /** What each posted message shows, as far as this run knows: unknown for those of an earlier run. */
  const shown: Array<string | undefined> = posted.map(() => undefined);
  let refused = false;
  let inFlight: Promise<unknown> = Promise.resolve();

  function nextChange(drafts: Draft[]): Change | undefined {
    for (const [index, draft] of drafts.entries()) {
      if (index >= posted.length) return { type: "post", draft };
      if (shown[index] !== JSON.stringify(draft)) return { type: "edit", index, draft };
    }
    // While text still grows, messages of an earlier run may be needed again.
    if (!reply.isOver) return undefined;
    const last = drafts.at(-1);
    // A message that nobody can name cannot be removed.
    if (record.isPosting && last !== undefined) return { type: "post", draft: { ...last, buttons: [] } };
    return posted.length > drafts.length ? { type: "remove" } : undefined;
  }

  function call<T>(make: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return callPlatform(make, callTimeoutMs);
  }

  async function post(draft: Draft): Promise<Receipt> {
    // Made before, it is found again, and shows what it showed then.
    const mayExist = isResumed || record.isPosting;
    record.isPosting = true;
    // That the first one may be under way stands in the record from the beginning.
    if (posted.length > 0) await options.onRecord();
    const { id, ...receipt } = await call((signal) => sink.post(draft, toNonce(record), signal));
    posted.push(id);
    shown.push(mayExist ? undefined : JSON.stringify(draft));
    record.isPosting = false;
    await options.onRecord();
    return receipt;
  }

  async function edit(index: number, draft: Draft): Promise<Receipt> {
    const id = posted[index];
    if (id === undefined) return {};
    const receipt = await call((signal) => sink.edit(id, draft, signal));
    shown[index] = JSON.stringify(draft);
    return receipt;
  }

  async function removeLast(): Promise<Receipt> {
    const id = posted.at(-1);
    if (id !== undefined) await call((signal) => sink.remove(id, signal));
    await forget(posted.length - 1);
    return {};
  }

  function apply(change: Change): Promise<Receipt> {
    if (change.type === "post") return post(change.draft);
    return change.type === "edit" ? edit(change.index, change.draft) : removeLast();
  }

  /** Takes a message off the record that is no longer on the platform. */
  async function forget(index: number): Promise<void> {
    posted.splice(index, 1);
    shown.splice(index, 1);
    record.removed += 1;
    await options.onRecord();
  }

  /** What follows from a refusal for good: the reply goes on another way, or ends. */
  async function onRefusal(change: Change, kind: SinkErrorKind): Promise<void> {
    // An earlier run may have taken a message back and died before it said so.
    if (kind === "gone" && change.type === "edit" && change.index > 0 && shown[change.index] === undefined) {
      return forget(change.index);
    }
    if (kind === "rejected" && change.type !== "remove" && !reply.isRejected) {
      reply.reject(change.type === "post" ? posted.length : change.index);
    } else {
      refused = true;
    }
    options.onRefused(kind);
  }

  async function write(): Promise<Written> {
    let drafts = reply.render();
    const change = refused ? undefined : nextChange(drafts);
    if (change === undefined) return { answer: { ok: true }, behind: false };
    const kind = change.type === "post" ? "post" : "edit";
    const wasPosting = record.isPosting;
    let receipt: Receipt = {};
    try {
      receipt = await apply(change);
      options.onCall(change.type, undefined);
    } catch (cause) {
      const error = toSinkError(cause);
      options.onCall(change.type, error);
      if (change.type === "post" && error.kind !== "unavailable") record.isPosting = wasPosting;
      if (error.kind === "rate-limited") {
        return { answer: { ok: false, retryAfter: (error.retryAfterMs ?? 1_000) / 1_000 }, behind: true, kind };
      }
      if (error.kind === "unavailable") return { answer: { ok: false }, behind: true, kind };
      await onRefusal(change, error.kind);
      if (refused) return { answer: { ok: true }, behind: false, kind };
      drafts = reply.render();
    }
    const rest = nextChange(drafts);
    const next = rest?.type === "post" ? "post" : "edit";
    return { answer: toAnswer(receipt), behind: rest !== undefined, kind, next };
  }

  return {
    append: reply.append,
    get text() {
      return reply.text;
    },
    end: reply.end,
    write() {
      const writing = write();
      inFlight = writing;
      return writing;
    },
    settled: async () => void (await inFlight),
  };
}

function toAnswer({ budget }: Receipt): Answer {
  if (budget === undefined) return { ok: true };
  const { limit, remaining, resetAfterMs } = budget;
  return { ok: true, budget: { limit, remaining, resetAfter: resetAfterMs / 1_000 } };
}

/** What an adapter rejects with that is no `SinkError`, a timeout among it, leaves open whether the call was carried out. */
function toSinkError(error: unknown): SinkError {
  if (error instanceof SinkError) return error;
  return new SinkError("unavailable", error instanceof Error ? error.message : String(error), { cause: error });
}
