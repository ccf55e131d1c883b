import type { Logger } from "pino";
import type { History } from "../history/history.ts";
import type { PictureJob } from "./picture-job.ts";
import { isDone, toHistoryText } from "./wording.ts";

/** Lets the history of a job's conversation know which of its pictures there are. Never rejects. */
export type WriteHistory = (job: PictureJob) => Promise<void>;

/**
 * The pictures of a job are one entry, found by each of their messages. It stands in the place of a person's words,
 * because models are shown pictures nowhere else, and would write such a line themselves if it stood in their own.
 */
export function createWriteHistory(history: Pick<History, "append" | "remove">, log: Logger): WriteHistory {
  return async (job) => {
    if (!job.isRemembered) return;
    const { id, at, conversationId, reply, author, after } = job;
    const done = job.parts.filter(isDone);
    const attachments = done.flatMap(({ attachment }) => attachment ?? []);
    const askedBy = { platform: reply.platform, id: author.id };
    const messages = [{ role: "user" as const, content: toHistoryText(job) }];
    const messageIds = done.map(({ messageId }) => messageId);
    try {
      if (done.length === 0) await history.remove(id);
      else await history.append(conversationId, { id, at, askedBy, messages, attachments }, messageIds, after);
    } catch (err) {
      log.error({ err, jobId: id }, "a picture could not be stored in the history");
    }
  };
}
