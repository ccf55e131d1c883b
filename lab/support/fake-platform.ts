import { Readable } from "node:stream";
import { createEvenPacer } from "../../src/pacing/even.ts";
import type { Adapter } from "../../src/port/adapter.ts";
import { SinkError, type SinkErrorKind } from "../../src/port/errors.ts";
import type { Draft, OutboundFile, Posted, ReplySink } from "../../src/port/sink.ts";

export interface Shown {
  id: string;
  nonce: string;
  draft: Draft;
  files: OutboundFile[];
}

/** A fault of a call: an error's kind makes the call fail, and a promise makes it wait. */
export type Trouble =
  | { kind: SinkErrorKind; retryAfterMs?: number; missing?: string; written?: boolean }
  | Promise<unknown>;

interface FakePlatformOptions {
  maxLength?: number | undefined;
  maxMessages?: number | undefined;
  traits?: ReplySink["traits"];
  isOwn?: boolean;
}

/**
 * A channel as people see it, with a record of the sink's calls. `trouble` runs before each call and can fail or delay
 * it. The test fails if two calls for one message overlap.
 */
export function fakePlatform({
  maxLength = 2_000,
  maxMessages = Infinity,
  traits = {},
  isOwn = false,
}: FakePlatformOptions = {}) {
  const channel: Shown[] = [];
  const calls: string[] = [];
  const progress: string[] = [];
  const violations: string[] = [];
  const inFlight = new Set<string>();
  /** Message ids by nonce. As on real platforms, a nonce still finds its message after a deletion. */
  const made = new Map<string, string>();
  const watchers: Array<() => void> = [];
  let trouble: (call: string) => Trouble | undefined = () => undefined;

  async function call<T>(name: string, target: string, act: () => T): Promise<T> {
    if (inFlight.has(target)) violations.push(`two calls at once for ${target}`);
    inFlight.add(target);
    calls.push(name);
    try {
      const problem = trouble(name);
      if (problem instanceof Promise) await problem;
      else if (problem !== undefined) {
        if (problem.written) act();
        throw new SinkError(problem.kind, `${name} was refused`, problem);
      }
      await Promise.resolve();
      return act();
    } finally {
      inFlight.delete(target);
      for (const wake of watchers.splice(0)) wake();
    }
  }

  function postOnce(nonce: string, draft: Draft, files: OutboundFile[]): Posted {
    const known = made.get(nonce);
    if (known !== undefined) return { id: known, ...attachmentsOf(known, files) };
    if (draft.markdown.length > maxLength) violations.push(`a message of ${draft.markdown.length} characters`);
    const id = `test:reply${made.size + 1}`;
    made.set(nonce, id);
    channel.push({ id, nonce, draft, files });
    return { id, ...attachmentsOf(id, files) };
  }

  function attachmentsOf(id: string, files: OutboundFile[]): Pick<Posted, "attachments"> {
    if (files.length === 0) return {};
    const attachments = files.map(({ name, bytes }, index) => {
      return { platform: "test", id: `${id}/${index}`, name, sizeBytes: bytes.length };
    });
    return { attachments };
  }

  /** Finds the file of an attachment in the channel. */
  function findFile(attachmentId: string): OutboundFile | undefined {
    const [, id, index] = /^(.*)\/(\d+)$/.exec(attachmentId) ?? [];
    return channel.find((shown) => shown.id === id)?.files[Number(index)];
  }

  const sink: ReplySink = {
    limits: { maxLength, lengthOf: (text) => text.length, maxFileBytes: 1_000_000, maxMessages },
    traits,
    budget: { key: "test", createPacer: () => createEvenPacer({ gapMs: 1 }) },
    post: (draft, nonce) => call("post", nonce, () => postOnce(nonce, draft, [])),
    upload: (files, caption = { markdown: "", buttons: [], streaming: false }, nonce) =>
      call("upload", nonce, () => postOnce(nonce, caption, files)),
    edit: (id, draft) =>
      call("edit", id, () => {
        const shown = channel.find((candidate) => candidate.id === id);
        if (shown === undefined) throw new SinkError("gone", "the message is gone");
        if (draft.markdown.length > maxLength) violations.push(`a message of ${draft.markdown.length} characters`);
        shown.draft = draft;
        return {};
      }),
    remove: (id) =>
      call("remove", id, () => {
        const index = channel.findIndex((candidate) => candidate.id === id);
        if (index >= 0) channel.splice(index, 1);
      }),
    progress: async (text) => void progress.push(text),
  };

  const adapter: Adapter = {
    platform: "test",
    ...(isOwn && { isOwn }),
    listen: async () => {},
    sink: () => sink,
    async openAttachment({ id }) {
      const file = findFile(id);
      if (file === undefined) throw new Error("there is no such file here");
      return Readable.from([file.bytes]);
    },
    isConnected: () => true,
    pause: async () => {},
    close: async () => {},
  };

  return {
    adapter,
    sink,
    channel,
    calls,
    progress,
    violations,
    findFile,
    texts: () => channel.map(({ draft }) => draft.markdown),
    setTrouble: (next: typeof trouble) => void (trouble = next),
    /** Resolves when `holds` returns true; checks after each call. */
    async until(holds: () => boolean): Promise<void> {
      while (!holds()) await new Promise<void>((resolve) => watchers.push(resolve));
    },
  };
}
