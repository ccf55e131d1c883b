import type { Logger } from "pino";
import type { Adapter, Author, Draft, InboundEvent, ReplyAddress } from "../adapter.ts";
import { callPlatform } from "../platform-call.ts";
import { toTurnId } from "../turn-record.ts";

const DRAFT: Draft = {
  markdown: "Waiting: other pictures are being drawn first.",
  buttons: [],
  streaming: false,
};

/** The status messages of jobs that could not begin at once. */
export interface WaitingRoom {
  /** Says that a job waits. Best effort. */
  announce(event: InboundEvent): void;
  /** The message that says so, for the job to go on with; undefined when there is none. */
  find(jobId: string): Promise<string | undefined>;
  /** The job has ended, and with it what its message said. */
  leave(jobId: string): void;
  /** Takes the message away: the job does not begin. */
  dismiss(jobId: string): Promise<void>;
  /** Dismisses what a person waits for. */
  forget(platform: string, authorId: string): Promise<void>;
}

interface Announcement {
  reply: ReplyAddress;
  author: Author;
  /** Undefined where it could not be posted. */
  messageId: Promise<string | undefined>;
}

export function createWaitingRoom(adapterOf: (platform: string) => Adapter, log: Logger): WaitingRoom {
  const announced = new Map<string, Announcement>();

  async function dismiss(jobId: string): Promise<void> {
    const found = announced.get(jobId);
    announced.delete(jobId);
    const messageId = await found?.messageId;
    if (found === undefined || messageId === undefined) return;
    const sink = adapterOf(found.reply.platform).sink(found.reply);
    await callPlatform((signal) => sink.remove(messageId, signal)).catch((err: unknown) => {
      log.warn({ err, jobId }, "the message of a job that does not begin could not be removed");
    });
  }

  return {
    announce({ key, reply, author }) {
      const jobId = toTurnId(key);
      const messageId = (async () => {
        const sink = adapterOf(reply.platform).sink(reply);
        return (await callPlatform((signal) => sink.post(DRAFT, toStatusNonce(jobId), signal))).id;
      })();
      announced.set(jobId, { reply, author, messageId: messageId.catch(() => undefined) });
    },
    find: async (jobId) => announced.get(jobId)?.messageId,
    leave: (jobId) => void announced.delete(jobId),
    dismiss,
    async forget(platform, authorId) {
      for (const [jobId, { reply, author }] of announced) {
        if (reply.platform === platform && author.id === authorId) await dismiss(jobId);
      }
    },
  };
}

/** The status message has one nonce, whether the job waits or runs. */
export function toStatusNonce(jobId: string): string {
  return `${jobId}:status`;
}
