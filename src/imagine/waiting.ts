import type { Logger } from "pino";
import { NEVER } from "../concurrency/deadlines.ts";
import type { ActionEvent, InboundEvent } from "../port/events.ts";
import { toPictureId, toTurnId } from "../port/ids.ts";
import type { Draft } from "../port/sink.ts";
import type { SinkOf } from "../reply/paced-sink.ts";
import type { JobStore } from "./job-store.ts";
import { toStop } from "./wording.ts";

const WAITING = "Waiting: other pictures are being drawn first.";

/** The status messages of jobs that could not begin at once. */
export interface WaitingMessages {
  /** Dismisses what is erased. */
  onAccepted(event: InboundEvent): void;
  /** Says that a job waits. Best effort. */
  announce(event: InboundEvent): void;
  /** The message that says so, for the job to go on with; undefined when there is none. */
  find(jobId: string): Promise<string | undefined>;
  /** The event that asked for the job, while it waits. */
  eventOf(jobId: string): InboundEvent | undefined;
  /** The job has ended, and with it what its message said. */
  leave(jobId: string): void;
  /** Takes the message away: the job does not begin. */
  dismiss(jobId: string): Promise<void>;
  /** Dismisses what a person waits for, `within` conversations whose ids begin so. */
  forget(platform: string, authorId: string, within?: string): Promise<void>;
}

interface Announcement {
  event: InboundEvent;
  /** Undefined where it could not be posted, or is not needed. */
  messageId: Promise<string | undefined>;
}

export interface WaitingDeps {
  jobs: Pick<JobStore, "load">;
  sinkOf: SinkOf;
  log: Logger;
}

export function createWaitingMessages({ jobs, sinkOf, log }: WaitingDeps): WaitingMessages {
  const announced = new Map<string, Announcement>();

  async function dismiss(jobId: string): Promise<void> {
    const found = announced.get(jobId);
    announced.delete(jobId);
    const messageId = await found?.messageId;
    if (found !== undefined && messageId !== undefined) await remove(found.event, messageId);
  }

  async function remove({ key, reply }: InboundEvent, messageId: string): Promise<void> {
    await sinkOf(reply)
      .remove(messageId, NEVER)
      .catch((err: unknown) => {
        log.warn({ err, jobId: toTurnId(key) }, "the message of a job that does not begin could not be removed");
      });
  }

  /** Resolves to the message; to undefined where another process has begun the job meanwhile, without seeing it. */
  async function post(event: InboundEvent, jobId: string): Promise<string | undefined> {
    const draft: Draft = { markdown: WAITING, buttons: [toStop(jobId)], streaming: false };
    const { id } = await sinkOf(event.reply).post(draft, toStatusNonce(jobId), NEVER);
    const job = await jobs.load(jobId).catch(() => undefined);
    if (job === undefined || job.statusId === id) return id;
    announced.delete(jobId);
    await remove(event, id);
    return undefined;
  }

  return {
    onAccepted({ key }) {
      if (key.startsWith(ERASURE)) void dismiss(key.slice(ERASURE.length));
    },
    announce(event) {
      const jobId = toTurnId(event.key);
      announced.set(jobId, { event, messageId: post(event, jobId).catch(() => undefined) });
    },
    find: async (jobId) => announced.get(jobId)?.messageId,
    eventOf: (jobId) => announced.get(jobId)?.event,
    leave: (jobId) => void announced.delete(jobId),
    dismiss,
    async forget(platform, authorId, within = "") {
      for (const [jobId, { event }] of announced) {
        const { reply, author, conversationId } = event;
        const isTheirs = reply.platform === platform && author.id === authorId;
        if (isTheirs && conversationId.startsWith(within)) await dismiss(jobId);
      }
    },
  };
}

const ERASURE = "forget:stop:";

/** The Stop of whoever asked, which tells every process that the request for a job is erased. */
export function toErasureStop(
  jobId: string,
  { conversationId, reply, author }: Pick<ActionEvent, "conversationId" | "reply" | "author">,
): ActionEvent {
  const stop = { kind: "action", action: "stop", turnId: toPictureId(jobId, 0) } as const;
  return { ...stop, key: `${ERASURE}${jobId}`, conversationId, reply, author, at: Date.now() };
}

/** The status message has one nonce, whether the job waits or runs. */
export function toStatusNonce(jobId: string): string {
  return `${jobId}:status`;
}
