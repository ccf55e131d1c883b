import type { Imagine } from "../imagine/imagine.ts";
import { toErasureStop } from "../imagine/waiting.ts";
import { mayConfigure } from "../policy/access.ts";
import type { Author, CommandEvent } from "../port/events.ts";
import { isSamePerson } from "../port/identity.ts";
import { toConversationOf } from "../port/ids.ts";
import { laneOf } from "../queue/event-lane.ts";
import type { Schedules } from "../schedules/schedules.ts";
import type { Services } from "../services/services.ts";
import { emptyLog } from "../store/database.ts";
import { hasBegun, isDone, type PictureTurn } from "../turn/record.ts";
import type { TurnRecords } from "../turn/records.ts";
import type { KeptLooking } from "./looking.ts";

/** Both methods erase data of the event's author and resolve to the number of erased messages. */
export interface Erasers {
  /**
   * Erases the whole conversation if the author manages the channel. Otherwise erases only the author's messages and
   * the answers to them.
   */
  conversation(event: CommandEvent): Promise<number>;
  everything(event: Pick<CommandEvent, "key" | "reply" | "author">): Promise<number>;
}

export interface PersonalDataDeps extends Services {
  records: TurnRecords;
  imagine: Imagine;
  looking: KeptLooking;
  schedules: Pick<Schedules, "exportAuthor">;
}

/** Erases the person's copies on the disk and in this process's memory. */
export function eraseCopies({ files, database }: Services): void {
  files.clear();
  emptyLog(database);
}

export interface PersonalData {
  erasers: Erasers;
  collect(platform: string, author: Author): Promise<object>;
}

export function createPersonalData(deps: PersonalDataDeps): PersonalData {
  const { queue, history, records, imagine, settings, usage, audit, looking, insight } = deps;
  const { adapterOf, stores } = deps;

  async function eraseConversation(event: CommandEvent): Promise<number> {
    const { conversationId, reply, author, at } = event;
    const person = mayConfigure(author) ? undefined : { platform: reply.platform, id: author.id };
    // Refuse only if the conversation never had a history, because then people talked only to each other. The command
    // can run again after a crash, when the history is already erased.
    const hasHistory = !(await history.isNew(conversationId));
    const adapter = adapterOf(reply.platform);
    const waiting = await queue.forgetDrawings(
      (drawing) => toConversationOf(drawing) === conversationId && isTheirs(event, drawing),
    );
    const drawn = await imagine.erase(
      person ? { owner: person, conversation: conversationId } : { conversation: conversationId },
    );
    const wanted = new Map<string, Wish>(waiting.map((drawing) => [laneOf(drawing).workId, drawing]));
    for (const turn of drawn) if (turn.phase !== "final") wanted.set(turn.id, turn);
    // Notify every process, so that none of them creates another link to an erased image.
    for (const [turnId, wish] of wanted) await queue.tell(toErasureStop(turnId, wish));
    if (hasHistory) await adapter.forget?.({ authorId: person?.id, conversation: { id: conversationId, before: at } });
    const erased = await history.forgetConversation(conversationId, person);
    await (person === undefined ? stores.eraseConversation(conversationId) : stores.eraseOwner(person, conversationId));
    eraseCopies(deps);
    return new Set([...erased, ...wanted.keys(), ...drawn.map(({ id }) => id)]).size;
  }

  async function eraseAuthor({
    key,
    reply: { platform },
    author,
  }: Parameters<Erasers["everything"]>[0]): Promise<number> {
    // Refuse before erasing anything, because a disabled platform may store more about the person.
    const adapter = adapterOf(platform);
    const { id } = author;
    await queue.forget(platform, id, key);
    const count = await history.forgetAuthor(platform, id);
    await imagine.dismissAll({ platform, id });
    await records.forget(platform, id);
    await insight?.forgetAuthor(platform, id);
    await usage.forgetAuthor(platform, id);
    await audit.forgetAuthor(platform, id);
    await adapter.forget?.({ authorId: id });
    await stores.eraseOwner({ platform, id });
    eraseCopies(deps);
    return count;
  }

  async function collect(platform: string, author: Author): Promise<object> {
    const { id } = author;
    return {
      platform,
      authorId: id,
      exportedAt: Date.now(),
      conversations: (await history.exportAuthor(platform, id)).conversations,
      personas: await settings.exportAuthor(platform, id),
      pictures: (await records.readPictures({ platform, id })).filter(hasBegun).map(toOwn),
      feedback: await records.readFeedback(platform, id),
      givenToModel: await records.readTraces(platform, id),
      ...(insight && { turns: await insight.exportAuthor(platform, id) }),
      usage: await usage.exportAuthor(platform, id),
      changes: await audit.exportAuthor(platform, id),
      schedules: await deps.schedules.exportAuthor(platform, id),
      lookedAt: await looking.exportAuthor(platform, id),
    };
  }

  return {
    erasers: { conversation: eraseConversation, everything: eraseAuthor },
    collect,
  };
}

interface OwnPicture {
  id: string;
  /** Unix milliseconds. */
  at: number;
  prompt: string;
  model: string;
  messageIds: string[];
}

/** An image that someone asked for and that is not finished. */
type Wish = Pick<PictureTurn, "conversationId" | "reply" | "author">;

/** True if `/forget conversation` erases the image: the person asked for it, or manages the channel. */
function isTheirs({ author, reply }: CommandEvent, wish: Wish): boolean {
  return mayConfigure(author) || (reply.platform === wish.reply.platform && isSamePerson(author, wish));
}

function toOwn({ id, at, prompt, model, parts }: PictureTurn): OwnPicture {
  return { id, at, prompt, model, messageIds: parts.filter(isDone).map(({ messageId }) => messageId) };
}
