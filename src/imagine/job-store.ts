import type { Logger } from "pino";
import { z } from "zod";
import { persist } from "../concurrency/retry.ts";
import type { PictureCopies } from "../media/picture-copies.ts";
import type { References } from "../media/reference.ts";
import type { Actor } from "../port/catalogue.ts";
import { toOwnerKey } from "../store/key-part.ts";
import type { Stores } from "../store/keyv.ts";
import { keysOf, walk } from "../store/values.ts";
import { filesOf, type PictureJob, picturesOf, readPictureJob } from "./picture-job.ts";

const NAMESPACE = "pictures";
/** Longer than anything waits to be drawn. */
const MARK_TTL_MS = 86_400_000;

const actor = z.object({
  author: z.looseObject({ id: z.string(), name: z.string(), isModerator: z.boolean().optional() }),
  reply: z.looseObject({ platform: z.string(), channelId: z.string() }),
});
/** The first form in which a stop was stored: it has no place, so that of the job counts. */
const author = actor.shape.author;

export interface OwnPicture {
  id: string;
  /** Unix milliseconds. */
  at: number;
  prompt: string;
  model: string;
  messageIds: string[];
}

/** Picture jobs by id, and for each person a namespace that names theirs; kept for `ttlMs` after the last change. */
export interface JobStore {
  /** A record that is damaged, or of another version, counts as absent. Rejects when the store does not answer. */
  load(id: string): Promise<PictureJob | undefined>;
  /**
   * Stores the job in its turn. Resolves also when the store failed for good, which is logged. False: it was erased
   * meanwhile, and so it stays.
   */
  save(job: PictureJob): Promise<boolean>;
  /** Keeps that somebody wants a job to end, whether it runs or has yet to begin. Rejects when the store does not answer. */
  askStop(jobId: string, by: Actor): Promise<void>;
  /** The person who asked to stop it; undefined: nobody. Rejects when the store does not answer. */
  whoAskedStop(job: Pick<PictureJob, "id" | "reply">): Promise<Actor | undefined>;
  dropStop(jobId: string): Promise<void>;
  /** Keeps that a message says, or is about to say, that a job waits. Resolves to whether that was kept already. */
  markWaiting(jobId: string, by: Actor): Promise<boolean>;
  isMarkedWaiting(jobId: string): Promise<boolean>;
  /** Resolves to whether it was kept. */
  dropWaiting(jobId: string): Promise<boolean>;
  /** `within`, here and below: of conversations whose ids begin like this. */
  exportAuthor(platform: string, authorId: string, within?: string): Promise<OwnPicture[]>;
  forget(platform: string, authorId: string, within?: string): Promise<void>;
  /** Erases the jobs that are meant, with or without pictures, and resolves to them. */
  erase(isMeant: (job: PictureJob) => boolean): Promise<PictureJob[]>;
}

export interface JobStoreOptions extends Pick<Stores, "open" | "inTurn"> {
  ttlMs: number;
  /** Copies that were made for a job go with it. */
  copies: Pick<PictureCopies, "erase" | "forget">;
  /** The links to its references go too, and all links to its pictures, for whichever job they were made. */
  links: Pick<References, "erase" | "forget">;
  log: Logger;
}

export function createJobStore(options: JobStoreOptions): JobStore {
  const { open, ttlMs, copies, links, log } = options;
  const keyv = open(NAMESPACE);
  const inTurn = <T>(id: string, task: () => Promise<T>) => options.inTurn(`${NAMESPACE}:${id}`, task);
  /** Jobs that were in the store: where one is there no more, it was erased. */
  const stored = new WeakSet<PictureJob>();

  async function store(job: PictureJob): Promise<boolean> {
    if (stored.has(job) && !(await keyv.has(job.id))) return false;
    await keyv.setMany([
      { key: job.id, value: job, ttl: ttlMs },
      { key: `${toOwnerKey(job.reply.platform, job.author.id)}:${job.id}`, value: 1, ttl: ttlMs },
    ]);
    stored.add(job);
    return true;
  }

  async function load(id: string): Promise<PictureJob | undefined> {
    const value = await keyv.get<unknown>(id);
    const job = readPictureJob(value);
    if (value !== undefined && job === undefined) log.error({ jobId: id }, "a picture's record cannot be read");
    if (job !== undefined) stored.add(job);
    return job;
  }

  async function erase(job: PictureJob): Promise<void> {
    const { id, reply, author } = job;
    await copies.erase(filesOf(job), id);
    await links.erase(job.references, id);
    await links.erase(picturesOf(job));
    await inTurn(id, () => keyv.deleteMany([id, `${toOwnerKey(reply.platform, author.id)}:${id}`]));
  }

  const idsOf = (owner: string) => keysOf(open(`${NAMESPACE}:${owner}`));

  async function jobsOf(platform: string, authorId: string, within = ""): Promise<PictureJob[]> {
    const jobs = await Promise.all([...(await idsOf(toOwnerKey(platform, authorId)))].filter(isJobId).map(load));
    return jobs.filter((job) => job?.conversationId.startsWith(within) === true) as PictureJob[];
  }

  /** Keeps what is not the job itself. Its name among what the person asked for is what erases it with that. */
  async function mark(key: string, { author, reply }: Actor, value: unknown): Promise<void> {
    await keyv.setMany([
      { key, value, ttl: MARK_TTL_MS },
      { key: `${toOwnerKey(reply.platform, author.id)}:${key}`, value: 1, ttl: MARK_TTL_MS },
    ]);
  }

  return {
    load,
    async save(job) {
      const onFailure = (err: unknown) => log.warn({ err, jobId: job.id }, "a picture's record could not be stored");
      let isKept = true;
      const write = async () => void (isKept = await inTurn(job.id, () => store(job)));
      await persist(write, onFailure);
      return isKept;
    },
    askStop: (jobId, { author, reply }) => {
      const { platform, channelId, threadId, workspaceId } = reply;
      return mark(
        toStopKey(jobId),
        { author, reply },
        { author, reply: { platform, channelId, threadId, workspaceId } },
      );
    },
    async whoAskedStop({ id, reply }) {
      const value = await keyv.get<unknown>(toStopKey(id));
      const former = author.safeParse(value);
      const { success, data } = actor.safeParse(former.success ? { author: former.data, reply } : value);
      return success ? data : undefined;
    },
    async dropStop(jobId) {
      await keyv.delete(toStopKey(jobId));
    },
    async markWaiting(jobId, by) {
      const isMarked = await keyv.has(toWaitingKey(jobId));
      if (!isMarked) await mark(toWaitingKey(jobId), by, 1);
      return isMarked;
    },
    isMarkedWaiting: (jobId) => keyv.has(toWaitingKey(jobId)),
    dropWaiting: (jobId) => keyv.delete(toWaitingKey(jobId)),
    exportAuthor: async (platform, authorId, within) => (await jobsOf(platform, authorId, within)).map(toOwn),
    async erase(isMeant) {
      const meant: PictureJob[] = [];
      for await (const [, value] of walk(keyv)) {
        const job = readPictureJob(value);
        if (job !== undefined && isMeant(job)) meant.push(job);
      }
      for (const job of meant) await erase(job);
      return meant;
    },
    async forget(platform, authorId, within) {
      if (within !== undefined) {
        for (const job of await jobsOf(platform, authorId, within)) await erase(job);
        return;
      }
      await copies.forget(platform, authorId);
      await links.forget(platform, authorId);
      const owner = toOwnerKey(platform, authorId);
      for (const id of await idsOf(owner)) {
        const job = isJobId(id) ? await load(id) : undefined;
        if (job !== undefined) await links.erase(picturesOf(job));
        // A record that is being stored at this moment goes too.
        await inTurn(id, () => keyv.deleteMany([id, `${owner}:${id}`]));
      }
    },
  };
}

function toOwn({ id, at, prompt, model, parts }: PictureJob): OwnPicture {
  const messageIds = parts.flatMap((part) => (part.state === "done" ? [part.messageId] : []));
  return { id, at, prompt, model, messageIds };
}

function toStopKey(jobId: string): string {
  return `stop:${jobId}`;
}

function toWaitingKey(jobId: string): string {
  return `waiting:${jobId}`;
}

function isJobId(id: string): boolean {
  return !id.startsWith("stop:") && !id.startsWith("waiting:");
}
