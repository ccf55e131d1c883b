import type { Keyv } from "keyv";
import type { Logger } from "pino";
import { persist } from "../bounds.ts";
import { createKeyedTurns } from "../history/keyed-turns.ts";
import { toKeyPart } from "../history/record.ts";
import { type PictureJob, readPictureJob } from "./picture-job.ts";

const NAMESPACE = "pictures";

/** What a person asked to be drawn. */
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
  /** What is damaged, or of another version, counts as absent. Rejects when the store does not answer. */
  load(id: string): Promise<PictureJob | undefined>;
  /**
   * Stores the job as it is when its turn has come. Resolves also when the store failed for good, which is logged: a
   * job does not end because it could not be kept.
   */
  save(job: PictureJob): Promise<void>;
  exportAuthor(platform: string, authorId: string): Promise<OwnPicture[]>;
  forget(platform: string, authorId: string): Promise<void>;
  /** Erases jobs, those of them that there are. */
  erase(ids: readonly string[]): Promise<void>;
  /** Erases the jobs of all conversations whose ids begin like this. */
  eraseConversations(prefix: string): Promise<void>;
}

export interface JobStoreOptions {
  /** Namespaces nest, and `setMany` and `deleteMany` do all or nothing: see `Stores`. */
  open(namespace: string): Keyv;
  ttlMs: number;
  log: Logger;
}

export function createJobStore({ open, ttlMs, log }: JobStoreOptions): JobStore {
  const keyv = open(NAMESPACE);
  const inTurn = createKeyedTurns();

  async function store(job: PictureJob): Promise<void> {
    await keyv.setMany([
      { key: job.id, value: job, ttl: ttlMs },
      { key: `${toOwner(job.reply.platform, job.author.id)}:${job.id}`, value: 1, ttl: ttlMs },
    ]);
  }

  async function load(id: string): Promise<PictureJob | undefined> {
    const value = await keyv.get<unknown>(id);
    const job = readPictureJob(value);
    if (value !== undefined && job === undefined) log.error({ jobId: id }, "a picture's record cannot be read");
    return job;
  }

  async function erase({ id, reply, author }: PictureJob): Promise<void> {
    await inTurn(id, () => keyv.deleteMany([id, `${toOwner(reply.platform, author.id)}:${id}`]));
  }

  async function idsOf(owner: string): Promise<string[]> {
    const iterator = open(`${NAMESPACE}:${owner}`).iterator;
    if (iterator === undefined) throw new TypeError("The store of the pictures cannot be walked through.");
    const entries = await Array.fromAsync(iterator(undefined) as AsyncIterable<[string, unknown]>);
    return [...new Set(entries.map(([id]) => id))];
  }

  return {
    load,
    save: (job) =>
      inTurn(job.id, async () => {
        const onFailure = (err: unknown) => log.warn({ err, jobId: job.id }, "a picture's record could not be stored");
        await persist(() => store(job), onFailure);
      }),
    async exportAuthor(platform, authorId) {
      const jobs = await Promise.all((await idsOf(toOwner(platform, authorId))).map(load));
      return jobs.filter((job) => job !== undefined).map(toOwn);
    },
    async erase(ids) {
      for (const id of ids) {
        const job = await load(id);
        if (job !== undefined) await erase(job);
      }
    },
    async eraseConversations(prefix) {
      if (keyv.iterator === undefined) throw new TypeError("The store of the pictures cannot be walked through.");
      for await (const [, value] of keyv.iterator(undefined) as AsyncIterable<[string, unknown]>) {
        const job = readPictureJob(value);
        if (job?.conversationId.startsWith(prefix)) await erase(job);
      }
    },
    async forget(platform, authorId) {
      const owner = toOwner(platform, authorId);
      // A record that is being stored at this moment goes too.
      for (const id of await idsOf(owner)) await inTurn(id, () => keyv.deleteMany([id, `${owner}:${id}`]));
    },
  };
}

function toOwn({ id, at, prompt, model, parts }: PictureJob): OwnPicture {
  const messageIds = parts.flatMap((part) => (part.state === "done" ? [part.messageId] : []));
  return { id, at, prompt, model, messageIds };
}

function toOwner(platform: string, authorId: string): string {
  return `by:${toKeyPart(platform)}:${toKeyPart(authorId)}`;
}
