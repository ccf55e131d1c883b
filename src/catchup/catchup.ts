import type { Actor } from "../port/catalogue.ts";
import type { CommandEvent } from "../port/events.ts";
import type { Services } from "../services/services.ts";
import { isZone } from "../settings/timezone.ts";
import { chooseModel, createAskModel } from "./ask.ts";
import { describeCatchup, HOW, toPosts } from "./describe.ts";
import { isStillOpen, readMissed } from "./missed.ts";
import { summarize } from "./summary.ts";
import { readWish } from "./wish.ts";

const RIGHTS_CHANGED =
  "While I was reading, your access to a channel or a thread changed, so I threw the summary away. Try `/catchup` again.";

/** Resolves to what a person has missed, as texts of messages that only they may see. It stores nothing. */
export type CatchUp = (
  event: CommandEvent,
  limits: Parameters<typeof toPosts>[1],
  signal: AbortSignal,
) => Promise<string[]>;

/** Reads, has the model summarise, and describes; see `missed.ts`, `summary.ts` and `describe.ts`. */
export function createCatchUp(deps: Services): CatchUp {
  return async (event, limits, signal) => {
    const { author, at } = event;
    // Everyone's own rights count: only the asker sees the answer.
    const by: Actor = { author, reply: { ...event.reply, visibleTo: author.id } };
    const zone = await findZone(deps, by);
    const wish = readWish(event.text, zone, at);
    if (wish === undefined) return [HOW];
    // A written command is a message itself, and ends what it asks for.
    const until = event.isSpoken === true ? at : at + 1;
    const choice = await chooseModel(deps, event);
    const missed = await readMissed(deps, wish, { by, until, mayAsk: choice.mayAsk }, signal);
    if (typeof missed === "string") return [missed];
    const ask = createAskModel(deps, event, choice, missed.places);
    const summary = await summarize(missed.messages, author.name, { ...deps, ask }, signal);
    if (!(await isStillOpen(deps, missed, by, signal))) return [RIGHTS_CHANGED];
    return toPosts(describeCatchup(missed, summary, { zone, now: at }), limits);
  };
}

async function findZone({ settings }: Pick<Services, "settings">, { author, reply }: Actor): Promise<string> {
  if (author.timeZone !== undefined && isZone(author.timeZone)) return author.timeZone;
  return (await settings.read(reply)).timezone ?? "UTC";
}
