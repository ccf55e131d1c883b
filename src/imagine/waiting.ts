import type { Logger } from "pino";
import { BoundedMap } from "../concurrency/bounded-map.ts";
import { NEVER } from "../concurrency/deadlines.ts";
import { asTakenUp } from "../concurrency/fence.ts";
import { PATIENT_PAUSES_MS, retry } from "../concurrency/retry.ts";
import type { ActionEvent, InboundEvent } from "../port/events.ts";
import { toPictureId, toTurnId } from "../port/ids.ts";
import type { Draft } from "../port/sink.ts";
import type { SinkOf } from "../reply/paced-sink.ts";
import type { JobStore } from "./job-store.ts";
import { toStop } from "./wording.ts";

const MAX_ANNOUNCED = 1_000;
const WAITING = "Waiting: other pictures are being drawn first.";

/** The status messages of jobs that could not begin at once. */
export interface WaitingMessages {
  /** Dismisses what is erased. */
  onAccepted(event: InboundEvent): void;
  /** Says that a job waits. Best effort. */
  announce(event: InboundEvent): void;
  /** The message that says so, for the job to go on with; undefined when this process has posted none. */
  find(jobId: string): Promise<string | undefined>;
  /**
   * True where another process may have posted one, which the job then goes on with where it finds it. From now on
   * that process takes back what the job does not go on with. Rejects when the store does not answer.
   */
  takeOver(jobId: string): Promise<boolean>;
  /** The event that asked for the job, while it waits. */
  eventOf(jobId: string): InboundEvent | undefined;
  /** The job has ended, and with it what its message said. */
  leave(jobId: string): void;
  /** Takes the message away, whichever process has posted it: the job of this event does not begin. */
  dismiss(event: InboundEvent): Promise<void>;
  /** Dismisses what a person waits for, `within` conversations whose ids begin so. */
  forget(platform: string, authorId: string, within?: string): Promise<void>;
}

interface Announcement {
  event: InboundEvent;
  /** Undefined where it could not be posted, or is not needed. */
  messageId: Promise<string | undefined>;
}

export interface WaitingDeps {
  jobs: Pick<JobStore, "load" | "markWaiting" | "isMarkedWaiting" | "dropWaiting">;
  sinkOf: SinkOf;
  log: Logger;
}

export function createWaitingMessages({ jobs, sinkOf, log }: WaitingDeps): WaitingMessages {
  // Of a job that another process draws nobody tells this one: the oldest go.
  const announced = new BoundedMap<string, Announcement>(MAX_ANNOUNCED);

  async function dismiss(jobId: string): Promise<boolean> {
    const found = announced.get(jobId);
    announced.delete(jobId);
    const messageId = await found?.messageId;
    if (found !== undefined && messageId !== undefined) await remove(found.event, messageId);
    return found !== undefined;
  }

  async function remove({ key, reply }: InboundEvent, messageId: string): Promise<void> {
    await sinkOf(reply)
      .remove(messageId, NEVER)
      .catch((err: unknown) => {
        log.warn({ err, jobId: toTurnId(key) }, "the message of a job that does not begin could not be removed");
      });
  }

  const takeOver = async (jobId: string): Promise<boolean> => !announced.has(jobId) && (await jobs.dropWaiting(jobId));

  /** Posts it, unless it stands there already. */
  async function say({ reply }: InboundEvent, jobId: string): Promise<string> {
    const draft: Draft = { markdown: WAITING, buttons: [toStop(jobId)], streaming: false };
    return (await sinkOf(reply).post(draft, toStatusNonce(jobId), NEVER)).id;
  }

  /** True for a message that another process does not go on with, which has begun the job or refused it meanwhile. */
  async function isLeftBehind(jobId: string, messageId: string): Promise<boolean> {
    if (await retry(() => jobs.isMarkedWaiting(jobId), { pausesMs: PATIENT_PAUSES_MS }, NEVER)) return false;
    const findStatus = async () => {
      const job = await jobs.load(jobId);
      if (job === undefined) throw new Error("The job has not begun.");
      return job.statusId;
    };
    const statusId = await retry(findStatus, { pausesMs: PATIENT_PAUSES_MS }, NEVER).catch(() => undefined);
    return statusId !== messageId;
  }

  /** Resolves to the message; to undefined where there is none, or it was taken back. */
  async function post(event: InboundEvent, jobId: string): Promise<string | undefined> {
    // Begun by a process that died, it has a message.
    if ((await jobs.load(jobId)) !== undefined) return undefined;
    // Kept first: whoever draws knows then that there may be a message, also when this process has died.
    const wasSaid = await jobs.markWaiting(jobId, event);
    const id = await (wasSaid ? asTakenUp(() => say(event, jobId)) : say(event, jobId));
    if (!(await isLeftBehind(jobId, id).catch(() => false))) return id;
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
    takeOver,
    leave(jobId) {
      if (announced.delete(jobId)) jobs.dropWaiting(jobId).catch(() => {});
    },
    async dismiss(event) {
      const jobId = toTurnId(event.key);
      if ((await dismiss(jobId)) || !(await takeOver(jobId).catch(() => false))) return;
      const found = await asTakenUp(() => say(event, jobId)).catch(() => undefined);
      if (found !== undefined) await remove(event, found);
    },
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
