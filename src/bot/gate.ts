import type { Logger } from "pino";
import { postNotice } from "../commands/command.ts";
import { runWithin } from "../concurrency/deadlines.ts";
import type { JobStore } from "../imagine/job-store.ts";
import type { Access } from "../policy/access.ts";
import type { Models } from "../policy/models.ts";
import type { Refusals } from "../policy/refusals.ts";
import type { Permission } from "../policy/rules.ts";
import type { Adapter } from "../port/adapter.ts";
import type { InboundEvent } from "../port/events.ts";
import { readPictureId, readTurnId, toTurnId } from "../port/ids.ts";
import type { Quota } from "../quota/quota.ts";
import type { SinkOf } from "../reply/paced-sink.ts";
import type { Settings } from "../settings/settings.ts";
import type { TurnRecords } from "../turn/record.ts";

const TELL_MS = 30_000;

/** The permission that somebody lacks, and the sentence for them. */
export interface Refusal {
  permission: Permission;
  text: string;
}

/** Every event passes here first: finds what the policy denies to its author, or their limits have no room for. */
export interface Gate {
  /** Undefined without a promise: the event needs no permission. A promise of undefined: permitted. Never rejects. */
  findRefusal(event: InboundEvent): Promise<Refusal | undefined> | undefined;
  /** Tells the person so that nobody else sees it; seldom, where they only wrote a message. Best effort. */
  tell(event: InboundEvent, refusal: Refusal, signal: AbortSignal): Promise<void>;
}

export interface GateDeps {
  quota: Pick<Quota, "findRefusal">;
  access: Pick<Access, "judge">;
  refusals: Refusals;
  records: Pick<TurnRecords, "load">;
  jobs: Pick<JobStore, "load">;
  settings: Pick<Settings, "read">;
  models: Pick<Models, "usual">;
  adapterOf(platform: string): Pick<Adapter, "postPrivately">;
  sinkOf: SinkOf;
  log: Logger;
}

export function createGate(deps: GateDeps): Gate {
  const { access, quota, refusals, settings, models, adapterOf, sinkOf, log } = deps;

  async function judge(event: InboundEvent, permission: Permission): Promise<Refusal | undefined> {
    const decide = await access.judge();
    const decision = decide(event, permission);
    if (!decision.isAllowed) return { permission, text: decision.refusal };
    const full =
      permission === "chat" || permission === "pictures" ? await quota.findRefusal(event, permission) : undefined;
    if (full !== undefined) return { permission, text: full };
    const model = models.usual(event);
    if (permission !== "chat" || decide(event, `model:${model}`).isAllowed) return undefined;
    // An answer may come from the channel's own model as well.
    const { model: own = model } = await settings.read(event.reply);
    const other = decide(event, `model:${own}`);
    return other.isAllowed ? undefined : { permission: `model:${own}`, text: other.refusal };
  }

  async function findRefusal(event: InboundEvent, permission: Permission): Promise<Refusal | undefined> {
    const refusal = await judge(event, permission);
    return refusal !== undefined && !(await hasBegun(event, deps)) ? refusal : undefined;
  }

  return {
    findRefusal(event) {
      const permission = toPermission(event);
      return permission && findRefusal(event, permission);
    },
    async tell(event, { permission, text }, signal) {
      const { reply, author } = event;
      const { postPrivately } = adapterOf(reply.platform);
      const isHeldOpen = isAwaited(event);
      try {
        if (!isHeldOpen && !(await refusals.claim(event, permission))) return;
        const isPrivate = reply.visibleTo !== undefined || reply.isDirect === true || event.kind === "action";
        const nonce = `${event.key}:refused`;
        await runWithin(
          TELL_MS,
          (signal) =>
            postPrivately === undefined || (isHeldOpen && isPrivate) || reply.isDirect === true
              ? postNotice(sinkOf({ ...reply, visibleTo: author.id }), event, text, signal)
              : postPrivately(reply, author.id, text, nonce, signal),
          signal,
        );
      } catch (err) {
        signal.throwIfAborted();
        log.warn({ err, key: event.key, permission }, "a person could not be told that something is denied to them");
      }
    },
  };
}

/** Work that was allowed when it began runs to its end: its messages would look unfinished for good. */
async function hasBegun(event: InboundEvent, { records, jobs, log }: GateDeps): Promise<boolean> {
  try {
    const begun = toTurnId(event.key);
    if (event.kind === "command") return (await jobs.load(begun))?.isOver === false;
    const record = await records.load(event.kind === "action" ? readTurnId(event.turnId) : begun);
    return record !== undefined && record.phase !== "final";
  } catch (err) {
    log.warn({ err, key: event.key }, "the record of earlier work could not be read");
    return false;
  }
}

/** True where the platform shows that something is to come until something does. */
function isAwaited(event: InboundEvent): boolean {
  if (event.kind === "message") return event.isAnsweredAlone === true;
  if (event.kind === "command") return event.isSpoken !== true;
  return event.kind === "action" && event.isSpoken !== true;
}

/**
 * The permission that an event needs; undefined for what everybody may do, such as a stop or a look at one's own data.
 * Settings commands check by themselves, since they also only show.
 */
function toPermission(event: InboundEvent): Permission | undefined {
  switch (event.kind) {
    case "message":
      return event.addressed === "other" ? undefined : "chat";
    case "edited":
      return "chat";
    case "command":
      if (event.name === "imagine") return "pictures";
      return event.name === "quiet" ? "chat" : undefined;
    case "action":
      // The picture module checks this itself: it knows what is to be drawn.
      return FREE.has(event.action) || readPictureId(event.turnId) !== undefined ? undefined : "chat";
    case "deleted":
    default:
      return undefined;
  }
}

const FREE: ReadonlySet<string> = new Set(["stop", "delete", "good", "bad", "explain", "show"]);
