import type { Logger } from "pino";
import { NEVER } from "../concurrency/deadlines.ts";
import type { ActionEvent, InboundEvent } from "../port/events.ts";
import { toPictureId, toTurnId } from "../port/ids.ts";
import type { Draft } from "../port/sink.ts";
import type { SinkOf } from "../reply/paced-sink.ts";
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
  /** Undefined where it could not be posted. */
  messageId: Promise<string | undefined>;
}

export function createWaitingMessages(sinkOf: SinkOf, log: Logger): WaitingMessages {
  const announced = new Map<string, Announcement>();

  async function dismiss(jobId: string): Promise<void> {
    const found = announced.get(jobId);
    announced.delete(jobId);
    const messageId = await found?.messageId;
    if (found === undefined || messageId === undefined) return;
    const sink = sinkOf(found.event.reply);
    await sink.remove(messageId, NEVER).catch((err: unknown) => {
      log.warn({ err, jobId }, "the message of a job that does not begin could not be removed");
    });
  }

  return {
    onAccepted({ key }) {
      if (key.startsWith(ERASURE)) void dismiss(key.slice(ERASURE.length));
    },
    announce(event) {
      const { key, reply } = event;
      const jobId = toTurnId(key);
      const draft: Draft = { markdown: WAITING, buttons: [toStop(jobId)], streaming: false };
      const messageId = (async () => (await sinkOf(reply).post(draft, toStatusNonce(jobId), NEVER)).id)();
      announced.set(jobId, { event, messageId: messageId.catch(() => undefined) });
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
