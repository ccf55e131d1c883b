import type { Access } from "../policy/access.ts";
import type { PictureJob } from "./picture-job.ts";

type AskedJob = Pick<PictureJob, "author" | "reply" | "model" | "references" | "change">;

/** Resolves to the sentence for an author who may not have this drawn; undefined: they may. */
export type FindJobRefusal = (asked: AskedJob) => Promise<string | undefined>;

export function createFindJobRefusal({ judge }: Pick<Access, "judge">): FindJobRefusal {
  return async ({ model, references, change, ...by }) => {
    const decide = await judge();
    // The first picture that a button starts from is the bot's own.
    const files = references.length - (change === undefined ? 0 : 1);
    const permissions = ["pictures", `model:${model}`, ...(files > 0 ? ["files" as const] : [])] as const;
    return permissions.map((permission) => decide(by, permission)).find(({ isAllowed }) => !isAllowed)?.refusal;
  };
}
