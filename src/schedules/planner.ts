import type { ActionEvent, CommandEvent } from "../port/events.ts";
import { isSamePerson } from "../port/identity.ts";
import type { ReplySink } from "../port/sink.ts";
import type { Services } from "../services/services.ts";
import { type Act, createAct, isOfSchedule } from "./acts.ts";
import { createUnderstand, HOW, type Wish } from "./proposal.ts";
import type { Schedule } from "./schedule.ts";
import type { Schedules } from "./schedules.ts";
import { describeCard, describeLine, describeOthers, type Shown, toCardButtons, toDraft } from "./wording.ts";

/** Longest list; every platform accepts it in one message. */
const MAX_LIST_CHARS = 1_700;

/** Lets people make and manage schedules. Resolves to sentences for them. Rejects if the store does not respond. */
export interface Planner {
  /** Understands a request and keeps it as a draft. Resolves to its card, or to the reason why it cannot. */
  propose(wish: Wish): Promise<(Shown & { draftId: string }) | string>;
  /** Shows the card of a draft, and remembers where. The same nonce shows it once. */
  showCard(draftId: string, card: Shown, how: CardPlace, signal: AbortSignal): Promise<void>;
  show(shown: Shown, how: CardPlace, signal: AbortSignal): Promise<void>;
  list(event: CommandEvent): Promise<string>;
  /** Changes one: by its button, or by its id. */
  act: Act;
  /** Carries out a pressed button. Resolves to what the person should see besides, if anything. */
  press(event: ActionEvent, signal: AbortSignal): Promise<Shown | undefined>;
}

export interface CardPlace {
  sink: ReplySink;
  nonce: string;
  isPrivate: boolean;
}

export function createPlanner(deps: Services & { schedules: Schedules }): Planner {
  const { schedules, access, sinkOf, now, log } = deps;
  const [act, understand] = [createAct(deps), createUnderstand(deps)];

  return {
    act,

    async propose(wish) {
      const wanted = await understand(wish);
      if (typeof wanted === "string") return wanted;
      const draft = await schedules.draft(wanted);
      return { draftId: draft.id, text: describeCard(draft, now()), buttons: toCardButtons(draft.id) };
    },

    async showCard(draftId, card, { sink, nonce, isPrivate }, signal) {
      const { id } = await sink.post(toDraft(card), nonce, signal);
      await schedules.change(draftId, (draft) =>
        draft?.state === "draft" ? { ...draft, card: { id, isPrivate } } : undefined,
      );
    },

    async show(shown, { sink, nonce }, signal) {
      await sink.post(toDraft(shown), nonce, signal);
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
      if (card === undefined || after?.state === "draft") return shown;
      // The card itself then shows what became of it.
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
