import type { Button, Draft, ReplySink } from "./adapter.ts";
import { SinkError, type SinkErrorKind } from "./errors.ts";
import type { Written } from "./pacing/pacer.ts";
import { HEAL_ROOM, healMarkdown } from "./text/heal.ts";
import { neutralize } from "./text/neutralize.ts";
import { createSplitter } from "./text/split.ts";

/** Longest a platform may take for one call before it counts as unanswered. */
const CALL_TIMEOUT_MS = 15_000;

export interface ReplyViewOptions {
  sink: ReplySink;
  turnId: string;
  /** Messages that earlier runs of this turn posted, in order. Grows and shrinks with what is on the platform. */
  posted: string[];
  /** Called after `posted` changed, before anything else is written. */
  onPosted(): Promise<void>;
  /** Told of every call the platform answered, refused or not. */
  onCall(kind: "post" | "edit" | "remove", error: SinkError | undefined): void;
  /** Told once when the platform will not take this reply any more, whatever is tried. */
  onRefused(kind: SinkErrorKind): void;
}

/** The messages of one reply: what they should show, and what they show. */
export interface ReplyView {
  append(text: string): void;
  /** Text so far, as the model wrote it. */
  readonly text: string;
  /** No more text comes; `note` stands under it. */
  end(note: string, buttons: Button[]): void;
  /** Makes the one most urgent call with the newest text. Never rejects; one at a time. */
  write(): Promise<Written>;
  /** Resolves when no call is in flight. */
  settled(): Promise<void>;
}

type Change = { type: "post"; draft: Draft } | { type: "edit"; index: number; draft: Draft } | { type: "remove" };

export function createReplyView(options: ReplyViewOptions): ReplyView {
  const { sink, turnId, posted } = options;
  const { maxLength, lengthOf } = sink.limits;
  // Room for healing is kept also when nothing is to heal: a draft must never need more messages than the final text.
  const splitter = createSplitter({ maxLength: maxLength - HEAL_ROOM, lengthOf });
  /** What each posted message shows, as far as this run knows: unknown for those of an earlier run. */
  const shown: Array<string | undefined> = posted.map(() => undefined);
  let text = "";
  let ending: { note: string; buttons: Button[] } | undefined;
  let refused = false;
  let inFlight: Promise<unknown> = Promise.resolve();

  function render(): Draft[] {
    const body = neutralize(text).trimEnd();
    const whole = ending === undefined ? body : [body, neutralize(ending.note)].filter(Boolean).join("\n\n");
    const parts = splitter.update(whole).filter((part) => part.text.trim() !== "");
    const drafts = parts.map((part, index): Draft => {
      if (index < parts.length - 1) return { markdown: part.text, buttons: [], streaming: false };
      if (ending !== undefined) return { markdown: part.text, buttons: ending.buttons, streaming: false };
      const stop: Button = { action: "stop", turnId, label: "Stop" };
      return { markdown: healMarkdown(part.text), buttons: [stop], streaming: true };
    });
    // Nothing of a block's half-written beginning may be fit to be shown yet.
    return drafts.filter((draft) => draft.markdown.trim() !== "");
  }

  function nextChange(drafts: Draft[]): Change | undefined {
    for (const [index, draft] of drafts.entries()) {
      if (index >= posted.length) return { type: "post", draft };
      if (shown[index] !== JSON.stringify(draft)) return { type: "edit", index, draft };
    }
    // While text still grows, messages of an earlier run may be needed again.
    if (ending !== undefined && posted.length > drafts.length) return { type: "remove" };
    return undefined;
  }

  async function apply(change: Change): Promise<void> {
    const signal = AbortSignal.timeout(CALL_TIMEOUT_MS);
    if (change.type === "post") {
      posted.push(await sink.post(change.draft, `${turnId}:${posted.length}`, signal));
      shown.push(JSON.stringify(change.draft));
      await options.onPosted();
    } else if (change.type === "edit") {
      const id = posted[change.index];
      if (id !== undefined) await sink.edit(id, change.draft, signal);
      shown[change.index] = JSON.stringify(change.draft);
    } else {
      const id = posted.at(-1);
      if (id !== undefined) await sink.remove(id, signal);
      posted.pop();
      shown.pop();
      await options.onPosted();
    }
  }

  async function write(): Promise<Written> {
    const drafts = render();
    const change = refused ? undefined : nextChange(drafts);
    if (change === undefined) return { answer: { ok: true }, behind: false };
    const kind = change.type === "post" ? "post" : "edit";
    try {
      await apply(change);
      options.onCall(change.type, undefined);
    } catch (cause) {
      const error = toSinkError(cause);
      options.onCall(change.type, error);
      if (error.kind === "rate-limited") {
        return { answer: { ok: false, retryAfter: (error.retryAfterMs ?? 1_000) / 1_000 }, behind: true, kind };
      }
      if (error.kind === "unavailable") return { answer: { ok: false }, behind: true, kind };
      refused = true;
      options.onRefused(error.kind);
      return { answer: { ok: true }, behind: false, kind };
    }
    const rest = nextChange(drafts);
    return { answer: { ok: true }, behind: rest !== undefined, kind, next: rest?.type === "post" ? "post" : "edit" };
  }

  return {
    append: (more) => void (text += more),
    get text() {
      return text;
    },
    end: (note, buttons) => void (ending = { note, buttons }),
    write() {
      const writing = write();
      inFlight = writing;
      return writing;
    },
    settled: async () => void (await inFlight),
  };
}

/** What an adapter rejects with that is no `SinkError`, a timeout among it, leaves open whether the call was carried out. */
function toSinkError(error: unknown): SinkError {
  if (error instanceof SinkError) return error;
  return new SinkError("unavailable", error instanceof Error ? error.message : String(error), { cause: error });
}
