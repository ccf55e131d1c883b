import { createHistory } from "../history/history.ts";
import { NO_WATCH } from "../insight/turn-watch.ts";
import { createFiles } from "../media/files.ts";
import { createModelLists } from "../models/model-list.ts";
import { withLinkErasure } from "../people/link-erasure.ts";
import { createAccess } from "../policy/access.ts";
import { createAudit } from "../policy/audit.ts";
import { createChatRules } from "../policy/chat-rules.ts";
import { createModels } from "../policy/models.ts";
import { createRefusals } from "../policy/refusals.ts";
import { NO_RIGHT, type Right } from "../port/right.ts";
import type { Queue } from "../queue/queue.ts";
import { createQuota } from "../quota/quota.ts";
import { createPacedSinks } from "../reply/paced-sink.ts";
import type { Base, Services } from "../services/services.ts";
import { createSettings } from "../settings/settings.ts";
import { createUsage } from "../usage/usage.ts";

export function createServices(base: Base, queue: Queue): Services {
  const { stores, adapterOf, log } = base;
  const now = Date.now;
  const usage = createUsage({ counters: stores.counters, now, log });
  const chatRules = createChatRules({ open: stores.open, inTurn: stores.inTurn, log, now: () => performance.now() });
  // These tasks, such as reads for the dashboard, need no proof of ownership, because no other process can take them
  // over.
  const writers = createWriters({ ...base, usage }, NO_RIGHT);
  return {
    ...base,
    ...writers,
    now,
    queue,
    usage,
    chatRules,
    access: createAccess({ policy: base.policy, chatRules }),
    models: createModels({ ...base, readScarcestLimit: writers.quota.readScarcest }),
    modelLists: createModelLists({ ...base, chatModel: base.model, now }),
    files: createFiles(async (ref, signal) => adapterOf(ref.platform).openAttachment(ref, signal)),
    watch: base.insight?.turns ?? NO_WATCH,
  };
}

/**
 * Returns the services for one piece of queued work. They write only while this process owns the work, and share the
 * process's caches.
 */
export function servicesUnder(services: Services, right: Right): Services {
  const stores = services.stores.under(right);
  const chatRules = services.chatRules.under(stores);
  return { ...services, stores, chatRules, ...createWriters({ ...services, stores }, right) };
}

/** Creates the services that write. They have no caches. */
function createWriters(base: Base & Pick<Services, "usage">, right: Right) {
  const { stores, references, log } = base;
  const now = Date.now;
  const kept = { open: stores.open, inTurn: stores.inTurn, ttlMs: base.limits.historyTtlMs, log };
  return {
    right,
    quota: createQuota({ ...base, right, counters: stores.counters, now }),
    history: withLinkErasure(createHistory({ ...kept, now, clock: stores.now }), references),
    settings: createSettings({ ...kept, now: stores.now }),
    audit: createAudit({ ...base, ...kept, now }),
    refusals: createRefusals(kept),
    sinkOf: createPacedSinks({ ...base, right }),
  };
}
