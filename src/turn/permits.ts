import type { Access, Judge } from "../policy/access.ts";
import type { Permission } from "../policy/rules.ts";
import type { Author } from "../port/events.ts";
import { isSamePerson } from "../port/identity.ts";
import type { Tool } from "../tools/tool.ts";
import type { TurnRecord } from "./record.ts";

/** The question or its model is denied to the person who asks. The message is a sentence for them. */
export class NotPermittedError extends Error {
  override readonly name = "NotPermittedError";
}

/** The permissions of one attempt: those of the person who asked and of the person who pressed for it, both. */
export interface Permits {
  may(permission: Permission): boolean;
  /** The sentence for a person who may not. */
  findRefusal(permission: Permission): string | undefined;
  /** The first that may be used, else the first. */
  chooseModel(models: readonly [string, ...string[]]): string;
  /** Throws a `NotPermittedError` where one of them is denied. */
  check(...permissions: readonly Permission[]): void;
  chooseTools(tools: readonly Tool[]): readonly Tool[];
}

/** `pressedBy` is who had the answer begin once more. */
export async function readPermits(
  { judge }: Pick<Access, "judge">,
  record: Pick<TurnRecord, "author" | "reply" | "conversationId">,
  pressedBy: Author | undefined,
): Promise<Permits> {
  return toPermits(await judge(), record, pressedBy);
}

function toPermits(
  judge: Judge,
  { author, reply, conversationId }: Pick<TurnRecord, "author" | "reply" | "conversationId">,
  pressedBy: Author | undefined,
): Permits {
  // The newest facts about the person count, not those of the time they asked.
  const isOwn = pressedBy !== undefined && isSamePerson(pressedBy, { author, conversationId });
  const people = pressedBy === undefined ? [author] : isOwn ? [pressedBy] : [author, pressedBy];
  const denied = (permission: Permission) =>
    people.map((one) => judge({ author: one, reply }, permission)).find((one) => !one.isAllowed);
  const may = (permission: Permission) => denied(permission) === undefined;

  return {
    may,
    findRefusal: (permission) => denied(permission)?.refusal,
    chooseModel: (models) => models.find((model) => may(`model:${model}`)) ?? models[0],
    check(...permissions) {
      const decision = permissions.map(denied).find((one) => one !== undefined);
      if (decision !== undefined) throw new NotPermittedError(decision.refusal);
    },
    chooseTools: (tools) =>
      tools.filter(({ name, needs = [] }) => may(`tool:${name}`) && needs.every((need) => may(need))),
  };
}
