import type { Author, MessageEvent, ReplyAddress } from "../port/events.ts";
import { toTurnId } from "../port/ids.ts";
import { truncate } from "../text/truncate.ts";
import type { TurnPiece } from "../tools/tool.ts";
import type { Ending } from "./endings.ts";
import type { TurnRecord } from "./record.ts";
import type { TurnRecords } from "./records.ts";

const MAX_PICTURES = 8;

const MAX_PROMPT_CHARS = 4_000;

/** Equal ids mean the same picture. */
interface AnswerPicture {
  id: string;
  conversationId: string;
  /** The history entry that the picture follows. */
  after: string | undefined;
  reply: ReplyAddress;
  author: Author;
  prompt: string;
  model: string;
  dataUrl: string;
}

/** `reason` is a sentence of Markdown. `canRetry` says whether a retry can help. */
interface MissingPicture {
  reason: string;
  canRetry: boolean;
}

/**
 * Posts a picture and stores it. Resolves to the reason if that failed. Rejects with the signal's reason, or if the
 * permissions cannot be read.
 */
export type ShowPicture = (picture: AnswerPicture, signal: AbortSignal) => Promise<MissingPicture | undefined>;

export interface AnswerPictures {
  /** `round` counts the attempt's answers from 1. */
  show(dataUrls: readonly string[], round: number, signal: AbortSignal): Promise<void>;
  /** Adapts the ending to the pictures. `isEmpty` is true if the answer has no text. */
  toEnding(ending: Ending, isEmpty: boolean): Ending;
  readonly hasAny: boolean;
}

interface PicturedTurn {
  record: Pick<TurnRecord, "conversationId" | "reply" | "author">;
  messages: readonly Pick<MessageEvent, "text">[];
  begin: Pieces["begin"];
  /** The model that is answering at the time of the call. */
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
      // The buttons need a message.
      return isEmpty && shown > 0 ? { ...ending, note: "_The answer is an image._" } : ending;
    },
    get hasAny() {
      return shown > 0;
    },
  };
}

/** Parts that an attempt shows in addition to the answer, such as pictures. */
export interface Pieces {
  next(): TurnPiece;
  /** The name must be unique in the attempt. */
  begin(name: string): Pick<TurnPiece, "id" | "after">;
  /** Reserves the numbers of the pieces. Returns the history entry that the answer follows. */
  end(): string | undefined;
}

/** If a process resumes a turn, its pieces get the same ids again. */
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
