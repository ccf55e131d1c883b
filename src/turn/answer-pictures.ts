import type { Author, MessageEvent, ReplyAddress } from "../port/events.ts";
import { toTurnId } from "../port/ids.ts";
import { truncate } from "../text/truncate.ts";
import type { TurnPiece } from "../tools/tool.ts";
import type { Ending } from "./endings.ts";
import type { TurnRecord } from "./record.ts";
import type { TurnRecords } from "./records.ts";

const MAX_PICTURES = 8;

const MAX_PROMPT_CHARS = 4_000;

/** A picture in the model's answer. Pictures with the same id are the same picture. */
interface AnswerPicture {
  id: string;
  conversationId: string;
  /** The id of the history entry that the picture follows. */
  after: string | undefined;
  reply: ReplyAddress;
  author: Author;
  prompt: string;
  model: string;
  dataUrl: string;
}

/** Why a picture is missing. `reason` is a sentence in Markdown. `canRetry` is true if a retry can help. */
interface MissingPicture {
  reason: string;
  canRetry: boolean;
}

/**
 * Posts a picture and stores it. If that fails, resolves to the reason. Rejects with the signal's reason, or if the
 * permissions cannot be read.
 */
export type ShowPicture = (picture: AnswerPicture, signal: AbortSignal) => Promise<MissingPicture | undefined>;

export interface AnswerPictures {
  /** Shows the pictures in an answer. `round` counts the attempt's answers from 1. */
  show(dataUrls: readonly string[], round: number, signal: AbortSignal): Promise<void>;
  /** Changes the end of the answer to suit the images in it. `isEmpty` is true if the answer has no text. */
  toEnding(ending: Ending, isEmpty: boolean): Ending;
  readonly hasAny: boolean;
}

interface PicturedTurn {
  record: Pick<TurnRecord, "conversationId" | "reply" | "author">;
  messages: readonly Pick<MessageEvent, "text">[];
  begin: Pieces["begin"];
  /** Returns the name of the model that is answering now. */
  answering(): string;
}

export function createAnswerPictures(
  showPicture: ShowPicture,
  { record: { conversationId, reply, author }, messages, begin, answering }: PicturedTurn,
): AnswerPictures {
  const words = messages.map(({ text }) => text).join("\n");
  const prompt = truncate(words.trim(), MAX_PROMPT_CHARS) || "a picture";
  let shown = 0;
  let missing: MissingPicture | undefined;

  return {
    async show(dataUrls, round, signal) {
      const different = [...new Set(dataUrls)].slice(0, MAX_PICTURES);
      for (const [index, dataUrl] of different.entries()) {
        const place = { ...begin(`answer:${round}:${index}`), conversationId, reply, author };
        const failure = await showPicture({ ...place, prompt, model: answering(), dataUrl }, signal);
        if (failure === undefined) shown += 1;
        else missing ??= failure;
      }
    },
    toEnding(ending, isEmpty) {
      if (ending.outcome !== "complete") return ending;
      if (missing !== undefined) {
        const { reason, canRetry } = missing;
        const note = `_An image from this answer is missing. ${reason}_`;
        return { outcome: canRetry ? "interrupted" : "complete", note, retry: canRetry };
      }
      // The answer needs a note, because its buttons need a message.
      return isEmpty && shown > 0 ? { ...ending, note: "_The answer is an image._" } : ending;
    },
    get hasAny() {
      return shown > 0;
    },
  };
}

/** Creates ids for the pieces that an attempt posts in addition to the answer, such as pictures. */
export interface Pieces {
  next(): TurnPiece;
  /** `name` must be unique in the attempt. */
  begin(name: string): Pick<TurnPiece, "id" | "after">;
  /**
   * Marks the ids of this attempt as used, so that the next answer gets others. Returns the id of the history entry
   * that the answer follows.
   */
  end(): string | undefined;
}

/** If another process resumes the turn, its pieces get the same ids again. */
export function createPieces(records: Pick<TurnRecords, "note">, record: TurnRecord): Pieces {
  let count = 0;

  function begin(name: string): Pick<TurnPiece, "id" | "after"> {
    const id = toTurnId(`${record.id}:made:${name}`);
    const pieces = (record.pieces ??= []);
    if (!pieces.includes(id)) pieces.push(id);
    void records.note(record);
    return { id, after: pieces[pieces.indexOf(id) - 1] ?? record.messageIds.at(-1) };
  }

  return {
    next() {
      const index = count++;
      return { index, ...begin(String((record.made ?? 0) + index)) };
    },
    begin: (name) => begin(`${record.made ?? 0}:${name}`),
    end() {
      const { pieces = [], made = 0, messageIds } = record;
      delete record.pieces;
      if (pieces.length > 0) record.made = made + pieces.length;
      return pieces.at(-1) ?? messageIds.at(-1);
    },
  };
}
