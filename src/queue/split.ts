import type { InboundEvent } from "../port/events.ts";
import type { Queue } from "./queue.ts";

/** Two queues as one: what no other process could answer stays in this one's own, and everything else is shared. */
export function createSplitQueue(own: Queue, shared: Queue, isOwn: (event: InboundEvent) => boolean): Queue {
  return {
    accept: (event) => (isOwn(event) ? own : shared).accept(event),
    tell: (event) => shared.tell(event),
    start(worker) {
      own.start(worker);
      shared.start(worker);
    },
    conversationOf: async (messageId) =>
      (await own.conversationOf(messageId)) ?? (await shared.conversationOf(messageId)),
    progressed(workId) {
      own.progressed(workId);
      shared.progressed(workId);
    },
    processes: shared.processes,
    depth() {
      const [ours, theirs] = [own.depth(), shared.depth()];
      return { waiting: ours.waiting + theirs.waiting, active: ours.active + theirs.active };
    },
    async forget(platform, authorId, exceptKey) {
      await Promise.all([own, shared].map((queue) => queue.forget(platform, authorId, exceptKey)));
    },
    async forgetDrawings(isMeant) {
      return (await Promise.all([own, shared].map((queue) => queue.forgetDrawings(isMeant)))).flat();
    },
    async close(graceMs) {
      await Promise.all([own.close(graceMs), shared.close(graceMs)]);
    },
  };
}
