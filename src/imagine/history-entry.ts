import type { Logger } from "pino";
import type { History } from "../history/history.ts";
import type { PictureJob } from "./picture-job.ts";
import { isDone, toHistoryText } from "./wording.ts";

/** Lets the history of a job's conversation know which of its pictures there are. Never rejects. */
export type WriteHistory = (job: PictureJob) => Promise<void>;

/** A job's pictures are one entry, as a person's words: models see pictures only there, and imitate their own. */
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
