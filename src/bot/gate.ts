import { postNotice } from "../commands/command.ts";
import { findCommand } from "../commands/commands.ts";
import { runWithin } from "../concurrency/deadlines.ts";
import type { Permission } from "../policy/rules.ts";
import type { InboundEvent } from "../port/events.ts";
import { readPictureId, readTurnId, toTurnId } from "../port/ids.ts";
import { checkRight } from "../port/right.ts";
import type { Services } from "../services/services.ts";
import { hasBegun as isImageStarted } from "../turn/record.ts";
import type { TurnRecords } from "../turn/records.ts";

const TELL_MS = 30_000;

/** The missing permission, and a sentence about it for the author. */
export interface Refusal {
  permission: Permission;
  text: string;
}

/** Checks each event first: that the policy permits it, and that the author has not reached a limit. */
export interface Gate {
  /**
   * Returns undefined, not a promise, if the event needs no permission. Otherwise resolves to undefined if the event is
   * permitted. Never rejects.
   */
  findRefusal(event: InboundEvent): Promise<Refusal | undefined> | undefined;
  /**
   * Sends the refusal to the author, privately if possible. Refused messages in a channel cause at most one notice in
   * ten minutes.
   */
  tell(event: InboundEvent, refusal: Refusal, signal: AbortSignal): Promise<void>;
}

type GateDeps = Services & { records: TurnRecords };

export function createGate(deps: GateDeps): Gate {
  const { access, quota, refusals, settings, models, adapterOf, sinkOf, right, watch, log } = deps;

  async function judge(event: InboundEvent, permission: Permission): Promise<Refusal | undefined> {
    const decide = await access.judge();
    const decision = decide(event, permission);
    if (!decision.isAllowed) return { permission, text: decision.refusal };
    const full =
      permission === "chat" || permission === "pictures" ? await quota.findRefusal(event, permission) : undefined;
    if (full !== undefined) return { permission, text: full };
    const model = models.usual(event);
    if (permission !== "chat" || decide(event, `model:${model}`).isAllowed) return undefined;
    // Check the channel's own model too, because it can answer instead of the usual model.
    const { model: own = model } = await settings.read(event.reply);
    const other = decide(event, `model:${own}`);
    return other.isAllowed ? undefined : { permission: `model:${own}`, text: other.refusal };
  }

  async function findRefusal(event: InboundEvent, permission: Permission): Promise<Refusal | undefined> {
    const refusal = await judge(event, permission);
    return refusal !== undefined && !(await hasStarted(event, deps)) ? refusal : undefined;
  }

  /** Records a refused question for the dashboard, because a refused question has no turn that could record it. */
  function keep(event: InboundEvent, note: string): void {
    if (event.kind !== "message") return;
    const { key, conversationId, reply, author, at: askedAt } = event;
    const turn = { turnId: toTurnId(key), conversationId, reply, author, model: models.usual(event) };
    const used = { promptTokens: 0, completionTokens: 0, estimatedTokens: 0 };
    const end = { number: 1, outcome: "refused", note, messages: 0, used, calls: [] };
    void watch.begin({ ...turn, askedAt, attempts: 1 }, right).end(end);
  }

  return {
    findRefusal(event) {
      const permission = toPermission(event);
      return permission && findRefusal(event, permission);
    },
    async tell(event, { permission, text }, signal) {
      const { reply, author } = event;
      const { notifyPrivately, isOwn } = adapterOf(reply.platform);
      // Always reply on Palaver's own pages, because a question without a reply looks like a failure there.
      const isHeldOpen = isAwaited(event) || isOwn === true;
      try {
        if (!isHeldOpen && !(await refusals.claim(event, permission))) return;
        keep(event, text);
        const isPrivate = reply.visibleTo !== undefined || reply.isDirect === true || event.kind === "action";
        const nonce = `${event.key}:refused`;
        await checkRight(right);
        await runWithin(
          TELL_MS,
          (signal) =>
            notifyPrivately === undefined || (isHeldOpen && isPrivate) || reply.isDirect === true
              ? postNotice(sinkOf({ ...reply, visibleTo: author.id }), event, text, signal)
              : notifyPrivately(reply, author.id, text, nonce, signal),
          signal,
        );
      } catch (err) {
        signal.throwIfAborted();
        log.warn({ err, key: event.key, permission }, "a refusal notice could not be delivered");
      }
    },
  };
}

/**
 * Resolves to true if work on this event has started. Such work continues even if the author has lost the permission;
 * otherwise its messages would stay unfinished.
 */
export async function hasStarted(
  event: InboundEvent,
  { records, log }: Pick<GateDeps, "records" | "log">,
): Promise<boolean> {
  try {
    const turnId = toTurnId(event.key);
    if (event.kind === "command") {
      const drawing = await records.loadPicture(turnId);
      return drawing !== undefined && isImageStarted(drawing) && drawing.phase !== "final";
    }
    const record = await records.load(event.kind === "action" ? readTurnId(event.turnId) : turnId);
    return record !== undefined && record.phase !== "final";
  } catch (err) {
    log.warn({ err, key: event.key }, "the record of earlier work could not be read");
    return false;
  }
}

/** True if the platform shows that it waits until the bot responds. */
function isAwaited(event: InboundEvent): boolean {
  if (event.kind === "message") return event.isAnsweredAlone === true;
  if (event.kind === "command") return event.isSpoken !== true;
  return event.kind === "action" && event.isSpoken !== true;
}

/**
 * Returns the permission that an event needs; undefined if the event needs none, such as stopping an answer or seeing
 * one's own data. Commands for settings check permissions themselves, because everyone can see a setting.
 */
function toPermission(event: InboundEvent): Permission | undefined {
  switch (event.kind) {
    case "message":
      return event.addressed === "other" ? undefined : "chat";
    case "edited":
      return "chat";
    case "command":
      return findCommand(event.name)?.needs;
    case "action":
      // `imagine` checks this button, because only `imagine` knows which images it will create.
      return FREE.has(event.action) || readPictureId(event.turnId) !== undefined ? undefined : "chat";
    case "deleted":
    default:
      return undefined;
  }
}

const FREE: ReadonlySet<string> = new Set(["stop", "delete", "good", "bad", "explain", "show", "unschedule", "pause"]);
