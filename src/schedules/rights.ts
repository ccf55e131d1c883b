import type { Decision } from "../policy/access.ts";
import type { Actor } from "../port/catalogue.ts";
import { isSamePerson } from "../port/identity.ts";
import type { Services } from "../services/services.ts";
import type { Schedule } from "./schedule.ts";

/** The tool's name. Rules of the policy deny schedules by it, also those of the command. */
export const TOOL = "schedule";

export const NOT_YOURS = "Only the person who made this schedule, a moderator or an admin can do that.";
export const NOT_THE_MAKER =
  "A schedule has the rights of the person who asked for it, so only that person can do that.";
export const GONE = "This schedule no longer exists.";

/** The decision that forbids this person to use schedules here. Undefined if nothing forbids it. */
export async function findDenial({ access }: Services, by: Actor): Promise<Decision | undefined> {
  const judge = await access.judge();
  const needed = ["chat", `tool:${TOOL}`] as const;
  return needed.map((permission) => judge(by, permission)).find(({ isAllowed }) => !isAllowed);
}

/** The reason why this person cannot change a schedule's time and task. Undefined if they can. */
export function findChangeRefusal(services: Services, by: Actor, one: Schedule | undefined): string | undefined {
  if (one === undefined) return GONE;
  if (!mayManage(services, by, one)) return NOT_YOURS;
  return one.state === "draft" && !isSamePerson(by.author, one) ? NOT_THE_MAKER : undefined;
}

/** True for the maker, a moderator of the place, and an admin. */
export function mayManage({ access }: Services, { author, reply }: Actor, one: Schedule): boolean {
  if (reply.platform !== one.reply.platform) return false;
  const isHere = reply.channelId === one.reply.channelId || reply.channelId === one.reply.threadId;
  return isSamePerson(author, one) || access.isAdmin({ author, reply }) || (isHere && author.isModerator === true);
}
