import type { ActionEvent, CommandEvent, EventBase } from "../port/events.ts";
import { isSamePerson } from "../port/identity.ts";
import type { Services } from "../services/services.ts";
import { quoteName } from "../text/quote-name.ts";
import { PAST, type Proposals } from "./proposal.ts";
import { findChangeRefusal, findDenial, GONE, mayManage, NOT_THE_MAKER, NOT_YOURS } from "./rights.ts";
import type { Schedule } from "./schedule.ts";
import type { Schedules } from "./schedules.ts";
import { findRuns } from "./when.ts";
import { describeNext, type Shown, say, toFields, toScheduleButtons, toShown } from "./wording.ts";

/** Maximum number of schedules of one person, and in one channel. */
const MAX_OF_PERSON = 20;
const MAX_OF_PLACE = 20;
const LOOK_MS = 5_000;
const NOT_THERE =
  "I can't confirm that we're both in this conversation, so I couldn't post here at that time. Add me to it, then press Create again.";

/** Buttons and commands confirm, change, delete, pause or resume a schedule. */
export type ScheduleAction = "schedule" | "reschedule" | "unschedule" | "pause" | "resume";

const ACTIONS: ReadonlySet<string> = new Set<ScheduleAction>([
  "schedule",
  "reschedule",
  "unschedule",
  "pause",
  "resume",
]);

/** True for a press of a schedule's button. */
export function isOfSchedule(event: ActionEvent): event is ActionEvent & { action: ScheduleAction } {
  return ACTIONS.has(event.action);
}

/** Changes a schedule for a person, or refuses. Resolves to what the person should see. */
export type Act = (
  event: CommandEvent | ActionEvent,
  action: ScheduleAction,
  id: string,
  signal: AbortSignal,
) => Promise<Shown>;

export function createAct(deps: ActDeps): Act {
  const { schedules, audit, adapterOf, now } = deps;

  /** A sentence about the limit that is already reached without this schedule. Undefined if none is. */
  async function findExcess({ author, reply, id: own, replaces = own }: Schedule): Promise<string | undefined> {
    const counts = async (of: Parameters<Schedules["list"]>[0]) =>
      (await schedules.list(of)).filter(({ id, state }) => state !== "ended" && id !== replaces).length;
    const theirs = await counts({ person: { platform: reply.platform, id: author.id } });
    if (theirs >= MAX_OF_PERSON) return `You have ${theirs} schedules, which is the limit. Delete one first.`;
    const here = await counts({ place: reply });
    if (here >= MAX_OF_PLACE)
      return `This channel has ${here} schedules, which is the limit. Someone must delete one first.`;
    return undefined;
  }

  async function isThere({ author, reply }: Schedule, signal: AbortSignal): Promise<boolean> {
    const adapter = adapterOf(reply.platform);
    if (adapter.isThere === undefined) return true;
    return adapter.isThere(author.id, reply, AbortSignal.any([signal, AbortSignal.timeout(LOOK_MS)]));
  }

  async function note(
    event: Pick<EventBase, "key" | "author" | "reply">,
    one: Schedule,
    after?: string,
  ): Promise<void> {
    const described = `${one.time}: ${one.task}`;
    await audit.note({ event, what: "schedule", ...(after === undefined ? { before: described } : { after }) });
  }

  async function create(event: CommandEvent | ActionEvent, draft: Schedule, signal: AbortSignal): Promise<Shown> {
    const refusal =
      (await findDenial(deps, { author: event.author, reply: draft.reply }))?.refusal ?? (await findExcess(draft));
    if (refusal !== undefined) return say(refusal);
    if (!(await isThere(draft, signal))) return say(NOT_THERE);
    const [next] = findRuns(draft, now(), 1);
    if (next === undefined) return say(PAST);
    const { replaces, card: _, ...fields } = draft;
    const before = replaces === undefined ? undefined : await schedules.read(replaces);
    if (before !== undefined && !mayManage(deps, event, before)) return say(NOT_YOURS);
    const made: Schedule = { ...fields, id: replaces ?? draft.id, state: "active", next, failures: 0 };
    const stored = await schedules.change(made.id, (before) =>
      replaces !== undefined && before === undefined ? undefined : made,
    );
    if (stored === undefined) return say(GONE);
    if (replaces !== undefined) await schedules.remove(draft.id);
    await note(event, made, `${made.time}: ${made.task}`);
    return toShown(made, now());
  }

  async function stop(event: CommandEvent | ActionEvent, one: Schedule): Promise<Shown> {
    await schedules.remove(one.id);
    if (one.state === "draft") return say("Cancelled: nothing is scheduled.");
    await note(event, one);
    return say(`Deleted: ${one.time}, ${quoteName(one.task)}.`);
  }

  async function pause(event: CommandEvent | ActionEvent, one: Schedule): Promise<Shown> {
    const paused = await schedules.change(one.id, (stored) => {
      if (stored?.state !== "active") return undefined;
      const { next: _, ...rest } = stored;
      return { ...rest, state: "paused" };
    });
    if (paused !== undefined) await note(event, one, `paused: ${one.time}`);
    return {
      text: `Paused: ${one.time}, ${quoteName(one.task)}.`,
      buttons: toScheduleButtons({ id: one.id, state: "paused" }),
    };
  }

  async function resume(event: CommandEvent | ActionEvent, one: Schedule): Promise<Shown> {
    const refusal =
      (await findDenial(deps, { author: event.author, reply: one.reply }))?.refusal ?? (await findExcess(one));
    if (refusal !== undefined) return say(refusal);
    const [next] = findRuns(one, now(), 1);
    if (next === undefined) return say(PAST);
    const active = await schedules.change(one.id, (stored) => {
      if (stored === undefined || stored.state === "active") return undefined;
      const { why: _, ...rest } = stored;
      return { ...rest, state: "active", next, failures: 0 };
    });
    if (active !== undefined) await note(event, one, `resumed: ${one.time}`);
    return {
      text: `Resumed. ${describeNext(one, now())}`,
      buttons: toScheduleButtons({ id: one.id, state: "active" }),
    };
  }

  return async (event, action, id, signal) => {
    const one = await schedules.read(id);
    if (one === undefined) return say(GONE);
    if (!mayManage(deps, event, one)) return say(NOT_YOURS);
    switch (action) {
      case "schedule":
        if (one.state !== "draft") return toShown(one, now());
        return isSamePerson(event.author, one) ? create(event, one, signal) : say(NOT_THE_MAKER);
      case "reschedule":
        return changeWords(deps, event, one);
      case "unschedule":
        return stop(event, one);
      case "pause":
        return one.state === "draft" ? say(GONE) : pause(event, one);
      case "resume":
        return one.state === "draft" ? say(GONE) : resume(event, one);
    }
    return action satisfies never;
  };
}

type ActDeps = Services & Pick<Proposals, "propose"> & { schedules: Schedules };

/** Shows the card of a new version. Without a form, shows the command to copy instead. */
async function changeWords(deps: ActDeps, event: CommandEvent | ActionEvent, one: Schedule): Promise<Shown> {
  const refusal = findChangeRefusal(deps, event, one);
  if (refusal !== undefined) return say(refusal);
  const { time, task } = toFields(one, deps.now());
  const fields = event.kind === "action" ? event.fields : undefined;
  if (fields === undefined) {
    return say(
      `Write the whole new version: \`/schedule change ${one.id} ${time} ${task}\`, or \`!schedule change …\` in a thread.`,
    );
  }
  const { key, conversationId, author, reply } = event;
  const shown = await deps.propose({ key, conversationId, author, reply, words: fields, replaces: one.id });
  if (shown.draftId !== undefined) return shown;
  const typed = `${fields.time}\n\n${fields.task}`.replace(/^/gm, "> ");
  return {
    text: `${shown.text} I changed nothing. You wrote:\n\n${typed}`,
    buttons: [{ action: "reschedule", turnId: one.id, label: "Try again" }],
  };
}
