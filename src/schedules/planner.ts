import type { ActionEvent, CommandEvent } from "../port/events.ts";
import { isSamePerson } from "../port/identity.ts";
import type { ReplySink } from "../port/sink.ts";
import type { Services } from "../services/services.ts";
import { type Act, createAct, isOfSchedule } from "./acts.ts";
import { createProposals, HOW, type Proposals } from "./proposal.ts";
import type { Schedule } from "./schedule.ts";
import type { Schedules } from "./schedules.ts";
import { describeLine, describeOthers, type Shown, toDraft } from "./wording.ts";

/** Longest list; every platform accepts it in one message. */
const MAX_LIST_CHARS = 1_700;

/** Lets people make and manage schedules. Resolves to sentences for them. Rejects if the store does not respond. */
export interface Planner extends Proposals {
  /** Posts a message, and remembers where the card of a draft is. The same nonce posts it once. */
  show(shown: Shown, how: CardPlace, signal: AbortSignal): Promise<void>;
  list(event: CommandEvent): Promise<string>;
  /** Changes the schedule that a button or a command names. */
  act: Act;
  /** Handles a pressed button. Resolves to the answer to post; undefined if the card itself shows the result. */
  press(event: ActionEvent, signal: AbortSignal): Promise<Shown | undefined>;
}

export interface CardPlace {
  sink: ReplySink;
  nonce: string;
  isPrivate: boolean;
}

export function createPlanner(deps: Services & { schedules: Schedules }): Planner {
  const { schedules, access, sinkOf, now, log } = deps;
  const proposals = createProposals(deps);
  const act = createAct({ ...deps, propose: proposals.propose });

  return {
    ...proposals,
    act,

    async show(shown, { sink, nonce, isPrivate }, signal) {
      const { id } = await sink.post(toDraft(shown), nonce, signal);
      if (shown.draftId === undefined) return;
      await schedules.change(shown.draftId, (draft) =>
        draft?.state === "draft" ? { ...draft, card: { id, isPrivate } } : undefined,
      );
    },

    async list(event) {
      const { author, reply } = event;
      const isAdmin = access.isAdmin(event);
      const own = await schedules.list({ person: { platform: reply.platform, id: author.id } });
      const others = isAdmin ? (await schedules.list()).filter((one) => isOthers(one, event)) : [];
      if (own.length + others.length === 0) return `You have no schedules. ${HOW}`;
      let room = MAX_LIST_CHARS;
      const lines = [...own.map((one) => describeLine(one, now())), ...others.map((one) => describeOthers(one, now()))];
      const shown = lines.filter((line) => (room -= line.length + 1) > 0);
      const rest = lines.length - shown.length;
      return [
        isAdmin ? "All schedules:" : "Your schedules:",
        ...shown,
        ...(rest > 0 ? [`and ${rest} more.`] : []),
        "",
        "To change one, write `/schedule`, then `pause`, `resume`, `delete` or `change`, and its id.",
      ].join("\n");
    },

    async press(event, signal) {
      if (!isOfSchedule(event)) return undefined;
      const before = await schedules.read(event.turnId);
      const shown = await act(event, event.action, event.turnId, signal);
      const card = before?.state === "draft" ? before.card : undefined;
      const after = await schedules.read(event.turnId);
      const isUnchanged = after?.state === "draft" && shown.draftId !== event.turnId;
      if (card === undefined || isUnchanged) return shown;
      // The card itself then shows what became of the draft.
      const sink = sinkOf(card.isPrivate ? event.reply : (before?.reply ?? event.reply));
      try {
        await sink.edit(card.id, toDraft(shown), signal);
        return undefined;
      } catch (err) {
        signal.throwIfAborted();
        log.info({ err, scheduleId: event.turnId }, "the card of a schedule could not be changed");
        return shown;
      }
    },
  };
}

function isOthers(one: Schedule, { author, reply }: CommandEvent): boolean {
  return one.reply.platform === reply.platform && !isSamePerson(author, one);
}
